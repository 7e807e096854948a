#include "cuda/event.h"

#include "cuda/device.h"

namespace functrans::cuda {
namespace {

struct EventObject {
  PyObject_HEAD CUevent event;
  Device* device;
};

PyTypeObject* event_type = nullptr;

EventObject* as_event(PyObject* object) { return reinterpret_cast<EventObject*>(object); }

// Runs `body` with the event's context current; null with an exception set where it fails.
template <typename Body>
PyObject* with_device(PyObject* self, Body body) {
  try {
    require_driver();
    const Current current(*as_event(self)->device);
    return body(as_event(self));
  } catch (const Failure& failure) {
    raise_failure(failure);
    return nullptr;
  }
}

PyObject* event_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"device", nullptr};
  int ordinal = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i:CudaEvent", const_cast<char**>(keywords),
                                   &ordinal)) {
    return nullptr;
  }
  try {
    Device& device = get_device(ordinal);
    const Current current(device);
    Ref object(type->tp_alloc(type, 0));
    if (!object) return nullptr;
    as_event(object.get())->device = &device;
    FT_CU(EventCreate(&as_event(object.get())->event, kEventDefault));
    return object.release();
  } catch (const Failure& failure) {
    raise_failure(failure);
    return nullptr;
  }
}

void event_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (as_event(self)->event != nullptr && !forked) driver.EventDestroy(as_event(self)->event);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* event_record(PyObject* self, PyObject*) {
  return with_device(self, [self](EventObject* event) {
    FT_CU(EventRecord(event->event, event->device->compute));
    return Py_NewRef(self);
  });
}

PyObject* event_synchronize(PyObject* self, PyObject*) {
  return with_device(self, [](EventObject* event) {
    {
      const Unlocked unlocked;
      check(driver.EventSynchronize(event->event), "EventSynchronize", event->device->ordinal);
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* event_query(PyObject* self, PyObject*) {
  return with_device(self, [](EventObject* event) {
    const CUresult result = driver.EventQuery(event->event);
    if (result != kNotReady) check(result, "EventQuery", event->device->ordinal);
    return PyBool_FromLong(result == kSuccess);
  });
}

PyObject* event_elapsed(PyObject* self, PyObject* later) {
  if (Py_TYPE(later) != event_type) {
    PyErr_SetString(PyExc_TypeError, "elapsed_ms takes the later CudaEvent");
    return nullptr;
  }
  return with_device(self, [later](EventObject* event) {
    float milliseconds = 0;
    {
      const Unlocked unlocked;
      check(driver.EventSynchronize(as_event(later)->event), "EventSynchronize",
            event->device->ordinal);
    }
    FT_CU(EventElapsedTime(&milliseconds, event->event, as_event(later)->event));
    return PyFloat_FromDouble(static_cast<double>(milliseconds));
  });
}

PyMethodDef event_methods[] = {
    {"record", event_record, METH_NOARGS, "record(): behind what the device was given so far."},
    {"synchronize", event_synchronize, METH_NOARGS, "synchronize(): wait until it has passed."},
    {"query", event_query, METH_NOARGS, "query(): whether it has passed."},
    {"elapsed_ms", event_elapsed, METH_O,
     "elapsed_ms(later): milliseconds from this event to a later one; waits for that."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_event(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(event_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(event_dealloc)},
                         {Py_tp_methods, event_methods},
                         {0, nullptr}};
  PyType_Spec spec = {"functrans._runtime.CudaEvent", sizeof(EventObject), 0, Py_TPFLAGS_DEFAULT,
                      slots};
  event_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return event_type != nullptr && PyModule_AddObjectRef(module, "CudaEvent",
                                                        reinterpret_cast<PyObject*>(event_type)) ==
                                      0;
}

}  // namespace functrans::cuda
