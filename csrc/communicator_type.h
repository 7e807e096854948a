// Communicators as classes of Python: a base with the collectives, and what makes objects of them.
#pragma once

#include "common.h"
#include "communicator.h"

namespace functrans {

struct CommunicatorObject {
  PyObject_HEAD Communicator* communicator;
};

extern PyTypeObject* communicator_type;

inline Communicator& communicator_of(PyObject* self) {
  return *reinterpret_cast<CommunicatorObject*>(self)->communicator;
}

// An object of a subtype, which owns the communicator; null with an exception set.
PyObject* new_communicator(PyTypeObject* type, Communicator* communicator);

bool init_communicator(PyObject* module);  // all of them
bool init_rendezvous(PyObject* module);
bool init_mpi_communicator(PyObject* module);

}  // namespace functrans
