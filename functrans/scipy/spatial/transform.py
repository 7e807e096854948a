"""Rotations and rigid transforms of space, with the names of scipy.spatial.transform."""

from functrans.core.errors import explain_missing_names
from functrans.scipy.spatial.rigid import RigidTransform, RotationSpline
from functrans.scipy.spatial.rotations import Rotation, Slerp

__all__ = ["RigidTransform", "Rotation", "RotationSpline", "Slerp"]

explain_missing_names(globals())
