#include "linear_tape.h"

#include "array.h"
#include "inline_vector.h"

#include <structmember.h>

#include <algorithm>

namespace functrans {
namespace {

// A slot of a Python class, read where it is instead of through its descriptor.
struct Slot {
  Py_ssize_t offset = 0;
  PyObject*& of(PyObject* object) const {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
  }
  bool find(PyObject* type, const char* name) {
    Ref member(PyObject_GetAttrString(type, name));
    if (!member) return false;
    if (!Py_IS_TYPE(member.get(), &PyMemberDescr_Type)) {
      PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
      return false;
    }
    offset = reinterpret_cast<PyMemberDescrObject*>(member.get())->d_member->offset;
    return true;
  }
};

struct Tape {
  PyTypeObject* linear_trace = nullptr;
  PyTypeObject* tracer = nullptr;
  PyTypeObject* equation = nullptr;
  PyTypeObject* linear = nullptr;
  Slot parent, tape, count;         // of a LinearTrace
  Slot trace, aval, index;          // of a LinearTracer
  Slot linear_aval;                 // of a Linear
  Slot shape, dtype, weak_type;     // of a ShapedArray
  PyObject* evaluate = nullptr;     // (primitive, args, params): where there is no trace
  PyObject* interpreted = nullptr;  // its attribute `source` is the line that is interpreted
  PyObject* user_source = nullptr;  // (): the line of the user, where that is None
  PyObject* selections = nullptr;   // primitives whose cotangents are masked
  PyObject* add = nullptr;          // add_any
};
Tape types;

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }
struct Names {
  PyObject* process = interned("process");
  PyObject* record = interned("record");
  PyObject* step_back = interned("step_back");
  PyObject* transpose = interned("transpose");
  PyObject* keeps_type = interned("keeps_type");
  PyObject* scalars_fit = interned("scalars_fit");
  PyObject* multiple_results = interned("multiple_results");
  PyObject* higher_order = interned("higher_order");
  PyObject* source = interned("source");
  PyObject* aval = interned("aval");
};
const Names& names() {
  static const Names found;
  return found;
}

bool is_mine(PyObject* x, PyObject* trace) {
  return Py_TYPE(x) == types.tracer && types.trace.of(x) == trace;
}

int flag(PyObject* object, PyObject* name) {
  Ref value(PyObject_GetAttr(object, name));
  return value ? value.get() == Py_True : -1;
}

// A LinearTrace that was initialised.
bool is_trace(PyObject* x) {
  return types.linear_trace != nullptr && PyObject_TypeCheck(x, types.linear_trace) &&
         types.parent.of(x) != nullptr && types.tape.of(x) != nullptr &&
         PyList_CheckExact(types.tape.of(x)) && types.count.of(x) != nullptr &&
         PyLong_CheckExact(types.count.of(x));
}

// Whether an array has a shape and a dtype.
bool has_type(ArrayObject* x, PyObject* shape, PyObject* dtype) {
  PyArrayObject* np = x->np;
  if (np == nullptr || reinterpret_cast<PyObject*>(PyArray_DESCR(np)) != dtype ||
      PyArray_NDIM(np) != PyTuple_GET_SIZE(shape)) {
    return false;
  }
  for (int i = 0; i < PyArray_NDIM(np); ++i) {
    PyObject* size = PyTuple_GET_ITEM(shape, i);
    if (!PyLong_CheckExact(size) || PyLong_AsSsize_t(size) != PyArray_DIM(np, i)) return false;
  }
  return true;
}

// The type of the result, borrowed, where it is that of a tangent: all operands have its shape and
// dtype, or are Python floats, and the primitive keeps types. Null where its rule has to be asked.
PyObject* same_type(PyObject* trace, PyObject* primitive, PyObject* args, PyObject* params) {
  if (PyDict_GET_SIZE(params) != 0 || flag(primitive, names().keeps_type) != 1) {
    PyErr_Clear();
    return nullptr;
  }
  PyObject* found = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args) && found == nullptr; ++i) {
    PyObject* a = PyTuple_GET_ITEM(args, i);
    if (is_mine(a, trace)) found = types.aval.of(a);
  }
  PyObject *shape = types.shape.of(found), *dtype = types.dtype.of(found);
  if (types.weak_type.of(found) != Py_False || !PyTuple_CheckExact(shape) ||
      !PyArray_DescrCheck(dtype) || reinterpret_cast<PyArray_Descr*>(dtype)->kind != 'f') {
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* a = PyTuple_GET_ITEM(args, i);
    if (PyFloat_CheckExact(a)) {
      const int fits = flag(primitive, names().scalars_fit);
      if (fits == 1) continue;
      if (fits < 0) PyErr_Clear();
      return nullptr;
    }
    if (is_exact_array(a) && !on_device(as_array(a))) {
      if (!has_type(as_array(a), shape, dtype)) return nullptr;
      continue;
    }
    Ref type(Py_TYPE(a) == types.tracer ? Py_NewRef(types.aval.of(a))
                                        : PyObject_GetAttr(a, names().aval));
    if (!type || Py_TYPE(type.get()) != Py_TYPE(found)) {
      PyErr_Clear();
      return nullptr;
    }
    if (type.get() == found) continue;
    if (types.dtype.of(type.get()) != dtype) return nullptr;
    PyObject* other = types.shape.of(type.get());
    if (other == shape) continue;
    const int equal = PyObject_RichCompareBool(other, shape, Py_EQ);
    if (equal != 1) {
      if (equal < 0) PyErr_Clear();
      return nullptr;
    }
  }
  return found;
}

// A new tracer of a trace, whose count of values grows.
Ref new_tracer(PyObject* trace, PyObject* aval) {
  Ref out(types.tracer->tp_alloc(types.tracer, 0));
  PyObject* count = types.count.of(trace);
  Ref next(PyLong_FromSsize_t(PyLong_AsSsize_t(count) + 1));
  if (!out || !next) return Ref();
  types.trace.of(out.get()) = Py_NewRef(trace);
  types.aval.of(out.get()) = Py_NewRef(aval);
  types.index.of(out.get()) = count;  // its reference goes to the tracer
  types.count.of(trace) = next.release();
  return out;
}

PyObject* record(PyObject* trace, PyObject* primitive, PyObject* args, PyObject* params,
                 PyObject* aval) {
  Ref source(PyObject_GetAttr(types.interpreted, names().source));
  if (source && source.get() == Py_None) source = Ref(PyObject_CallNoArgs(types.user_source));
  if (!source) return nullptr;
  Ref out = new_tracer(trace, aval);
  Ref outs(out ? PyTuple_Pack(1, out.get()) : nullptr);
  Ref equation(outs ? types.equation->tp_alloc(types.equation, 5) : nullptr);
  if (!equation) return nullptr;
  PyObject* parts[] = {primitive, args, outs.get(), params, source.get()};
  for (Py_ssize_t i = 0; i < 5; ++i) {
    PyTuple_SET_ITEM(equation.get(), i, Py_NewRef(parts[i]));
  }
  if (PyList_Append(types.tape.of(trace), equation.get()) < 0) return nullptr;
  return out.release();
}

// cotangents[i] += c, in the list; a sum is masked if all of its terms are.
bool accumulate(PyObject* cotangents, PyObject* masked, Py_ssize_t i, PyObject* c, bool mask) {
  PyObject* have = PyList_GET_ITEM(cotangents, i);
  const bool first = have == Py_None;
  Ref sum;
  if (first) {
    sum = Ref::borrow(c);
  } else {
    PyObject* both[] = {have, c};
    sum = Ref(PyObject_Vectorcall(types.add, both, 2, nullptr));
  }
  if (!sum) return false;
  const bool all = mask && (first || PyList_GET_ITEM(masked, i) == Py_True);
  return PyList_SetItem(cotangents, i, sum.release()) == 0 &&
         PyList_SetItem(masked, i, Py_NewRef(all ? Py_True : Py_False)) == 0;
}

// What an operation's rule gives for the cotangent of its one result.
Ref transposed(PyObject* trace, PyObject* primitive, PyObject* ct, PyObject* args,
               PyObject* params) {
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  InlineVector<PyObject*, 8> given;
  given.push_back(primitive);
  given.push_back(ct);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* a = PyTuple_GET_ITEM(args, i);
    PyObject* place = Py_NewRef(a);
    if (is_mine(a, trace)) {
      Py_SETREF(place, types.linear->tp_alloc(types.linear, 0));
      if (place == nullptr) break;
      types.linear_aval.of(place) = Py_NewRef(types.aval.of(a));
    }
    given.push_back(place);
  }
  Ref found;
  if (given.size() == static_cast<std::size_t>(n + 2)) {
    if (PyDict_GET_SIZE(params) == 0) {
      found = Ref(PyObject_VectorcallMethod(names().transpose, given.data(), given.size(), nullptr));
    } else {
      Ref rule(PyObject_GetAttr(primitive, names().transpose));
      found = Ref(rule ? PyObject_VectorcallDict(rule.get(), given.data() + 1, given.size() - 1,
                                                 params)
                       : nullptr);
    }
  }
  for (std::size_t i = 2; i < given.size(); ++i) Py_DECREF(given[i]);
  return found;
}

// One operation, backwards; 1 where Python has to do it.
int step_back(PyObject* trace, PyObject* equation, PyObject* cotangents, PyObject* masked) {
  PyObject* primitive = PyTuple_GET_ITEM(equation, 0);
  PyObject* args = PyTuple_GET_ITEM(equation, 1);
  PyObject* outs = PyTuple_GET_ITEM(equation, 2);
  if (PyTuple_GET_SIZE(outs) != 1) return 1;
  const Py_ssize_t index = PyLong_AsSsize_t(types.index.of(PyTuple_GET_ITEM(outs, 0)));
  Ref ct = Ref::borrow(PyList_GET_ITEM(cotangents, index));
  if (ct.get() == Py_None) return 0;
  if (PyList_GET_ITEM(masked, index) == Py_True) return 1;
  for (PyObject* name : {names().multiple_results, names().higher_order}) {
    if (const int is = flag(primitive, name)) return is;
  }
  Ref rule(PyObject_GetAttr(primitive, names().transpose));
  if (!rule) return -1;
  if (rule.get() == Py_None) return 1;
  if (PyList_SetItem(cotangents, index, Py_NewRef(Py_None)) < 0 ||
      PyObject_SetAttr(types.interpreted, names().source, PyTuple_GET_ITEM(equation, 4)) < 0) {
    return -1;
  }
  Ref found = transposed(trace, primitive, ct.get(), args, PyTuple_GET_ITEM(equation, 3));
  Ref items(found ? PySequence_Fast(found.get(), "a rule 'transpose' returns a sequence")
                  : nullptr);
  if (!items) return -1;
  const int mask = PySet_Contains(types.selections, primitive);
  if (mask < 0) return -1;
  const Py_ssize_t n = std::min(PyTuple_GET_SIZE(args), PySequence_Fast_GET_SIZE(items.get()));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* a = PyTuple_GET_ITEM(args, i);
    PyObject* c = PySequence_Fast_GET_ITEM(items.get(), i);
    if (c == Py_None || !is_mine(a, trace)) continue;
    const Py_ssize_t place = PyLong_AsSsize_t(types.index.of(a));
    if (!accumulate(cotangents, masked, place, c, mask == 1)) return -1;
  }
  return 0;
}

}  // namespace

PyObject* set_tape_types(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 10) {
    PyErr_SetString(PyExc_TypeError, "set_tape_types takes five classes and five helpers");
    return nullptr;
  }
  for (int i = 0; i < 5; ++i) {
    if (!PyType_Check(args[i])) {
      PyErr_Format(PyExc_TypeError, "set_tape_types: %R is no class", args[i]);
      return nullptr;
    }
  }
  Tape made;
  if (!made.parent.find(args[0], "parent") || !made.tape.find(args[0], "tape") ||
      !made.count.find(args[0], "count") || !made.trace.find(args[1], "_trace") ||
      !made.aval.find(args[1], "_aval") || !made.index.find(args[1], "index") ||
      !made.linear_aval.find(args[3], "aval") || !made.shape.find(args[4], "shape") ||
      !made.dtype.find(args[4], "dtype") || !made.weak_type.find(args[4], "weak_type")) {
    return nullptr;
  }
  for (int i = 0; i < 10; ++i) Py_INCREF(args[i]);  // for as long as the process runs
  made.linear_trace = reinterpret_cast<PyTypeObject*>(args[0]);
  made.tracer = reinterpret_cast<PyTypeObject*>(args[1]);
  made.equation = reinterpret_cast<PyTypeObject*>(args[2]);
  made.linear = reinterpret_cast<PyTypeObject*>(args[3]);
  made.evaluate = args[5];
  made.interpreted = args[6];
  made.user_source = args[7];
  made.selections = args[8];
  made.add = args[9];
  types = made;
  Py_RETURN_NONE;
}

PyObject* tape_process(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 4 || !is_trace(args[0]) || !PyTuple_CheckExact(args[2]) ||
      !PyDict_CheckExact(args[3])) {
    PyErr_SetString(PyExc_TypeError, "tape_process takes a trace, a primitive, a tuple and a dict");
    return nullptr;
  }
  PyObject *trace = args[0], *primitive = args[1], *operands = args[2], *params = args[3];
  bool mine = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands) && !mine; ++i) {
    mine = is_mine(PyTuple_GET_ITEM(operands, i), trace);
  }
  if (!mine) {
    PyObject* parent = types.parent.of(trace);
    PyObject* given[] = {parent, primitive, operands, params};
    if (parent == Py_None) return PyObject_Vectorcall(types.evaluate, given + 1, 3, nullptr);
    return PyObject_VectorcallMethod(names().process, given, 4, nullptr);
  }
  if (PyObject* aval = same_type(trace, primitive, operands, params)) {
    return record(trace, primitive, operands, params, aval);
  }
  return PyObject_VectorcallMethod(names().record, args, 4, nullptr);
}

PyObject* tape_backwards(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 3 || !is_trace(args[0]) || !PyList_CheckExact(args[1]) ||
      !PyList_CheckExact(args[2]) ||
      PyList_GET_SIZE(args[1]) != PyLong_AsSsize_t(types.count.of(args[0])) ||
      PyList_GET_SIZE(args[1]) != PyList_GET_SIZE(args[2])) {
    PyErr_SetString(PyExc_TypeError, "tape_backwards takes a trace and two lists of its values");
    return nullptr;
  }
  PyObject *trace = args[0], *cotangents = args[1], *masked = args[2];
  const Ref tape = Ref::borrow(types.tape.of(trace));
  for (Py_ssize_t i = PyList_GET_SIZE(tape.get()); i-- > 0;) {
    const Ref equation = Ref::borrow(PyList_GET_ITEM(tape.get(), i));
    const int status = step_back(trace, equation.get(), cotangents, masked);
    if (status < 0) return nullptr;
    if (status == 1) {
      PyObject* given[] = {trace, equation.get(), cotangents, masked};
      const Ref done(PyObject_VectorcallMethod(names().step_back, given, 4, nullptr));
      if (!done) return nullptr;
    }
  }
  Py_RETURN_NONE;
}

}  // namespace functrans
