#include "structure.h"

#include "signature.h"

namespace functrans {

Structure::~Structure() {
  Py_XDECREF(type_);
  Py_XDECREF(template_);
  for (PyObject* key : keys_) Py_DECREF(key);
}

std::unique_ptr<Structure> Structure::parse(PyObject* tree, int depth) {
  std::unique_ptr<Structure> node(new Structure());
  if (tree == Py_Ellipsis) {
    node->leaf_count_ = 1;
    return node;
  }
  if (tree == Py_None) {
    node->kind_ = Kind::none;
    return node;
  }
  InlineVector<PyObject*, 16> children;
  if (PyDict_CheckExact(tree)) {
    node->kind_ = Kind::dict;
    DictItems items;
    if (sorted_items(tree, items) != Flattened::ok) {
      PyErr_SetString(PyExc_TypeError,
                      "an out structure has dicts with keys of type str or int only; "
                      "pass a function that builds the result instead");
      return nullptr;
    }
    node->template_ = PyDict_New();
    if (node->template_ == nullptr) return nullptr;
    for (const DictItem& item : items) {
      node->keys_.push_back(Py_NewRef(item.key));
      children.push_back(item.value);
      if (PyDict_SetItem(node->template_, item.key, Py_None) < 0) return nullptr;
    }
  } else if (PyTuple_CheckExact(tree) || PyList_CheckExact(tree) ||
             is_registered_namedtuple(Py_TYPE(tree))) {
    node->kind_ = PyTuple_CheckExact(tree)  ? Kind::tuple
                  : PyList_CheckExact(tree) ? Kind::list
                                            : Kind::namedtuple;
    if (node->kind_ == Kind::namedtuple) {
      node->type_ = Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(tree)));
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(tree); ++i) {
      children.push_back(PySequence_Fast_GET_ITEM(tree, i));
    }
  } else {
    PyErr_Format(PyExc_TypeError,
                 "an out structure holds tuples, lists, dicts, None and ... for "
                 "leaves, not %.200s; pass a function that builds the result instead",
                 Py_TYPE(tree)->tp_name);
    return nullptr;
  }
  if (depth == kMaxDepth) {
    raise_too_deep();
    return nullptr;
  }
  for (PyObject* child : children) {
    std::unique_ptr<Structure> parsed = parse(child, depth + 1);
    if (parsed == nullptr) return nullptr;
    node->leaf_count_ += parsed->leaf_count_;
    node->children_.push_back(std::move(parsed));
  }
  return node;
}

PyObject* Structure::build(PyObject* const*& next) const {
  const Py_ssize_t size = static_cast<Py_ssize_t>(children_.size());
  switch (kind_) {
    case Kind::leaf: return Py_NewRef(*next++);
    case Kind::none: Py_RETURN_NONE;
    case Kind::dict: {
      Ref dict(PyDict_Copy(template_));  // one allocation, and no growing while keys come in
      for (Py_ssize_t i = 0; i < size && dict; ++i) {
        Ref value(children_[i]->build(next));
        if (!value || PyDict_SetItem(dict.get(), keys_[i], value.get()) < 0) return nullptr;
      }
      return dict.release();
    }
    case Kind::list: {
      Ref list(PyList_New(size));
      for (Py_ssize_t i = 0; i < size && list; ++i) {
        PyObject* value = children_[i]->build(next);
        if (value == nullptr) return nullptr;
        PyList_SET_ITEM(list.get(), i, value);
      }
      return list.release();
    }
    case Kind::tuple:
    case Kind::namedtuple: {
      Ref tuple(PyTuple_New(size));
      for (Py_ssize_t i = 0; i < size && tuple; ++i) {
        PyObject* value = children_[i]->build(next);
        if (value == nullptr) return nullptr;
        PyTuple_SET_ITEM(tuple.get(), i, value);
      }
      if (!tuple || kind_ == Kind::tuple) return tuple.release();
      return PyObject_Call(type_, tuple.get(), nullptr);
    }
  }
  return nullptr;
}

int Structure::traverse(visitproc visit, void* arg) const {
  Py_VISIT(type_);
  Py_VISIT(template_);
  for (PyObject* key : keys_) Py_VISIT(key);
  for (const auto& child : children_) {
    if (const int status = child->traverse(visit, arg)) return status;
  }
  return 0;
}

}  // namespace functrans
