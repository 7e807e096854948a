// Meetings as classes of Python: a base with the collectives, and what makes objects of them.
#pragma once

#include "common.h"
#include "meeting.h"

namespace functrans {

struct MeetingObject {
  PyObject_HEAD Meeting* meeting;
};

extern PyTypeObject* meeting_type;

inline Meeting& meeting_of(PyObject* self) {
  return *reinterpret_cast<MeetingObject*>(self)->meeting;
}

// An object of a subtype, which owns the meeting; null with an exception set.
PyObject* new_meeting(PyTypeObject* type, Meeting* meeting);

bool init_meeting(PyObject* module);  // all of them
bool init_rendezvous(PyObject* module);
bool init_mpi_meeting(PyObject* module);

}  // namespace functrans
