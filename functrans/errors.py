"""The exceptions, under their own names and under those of jax.errors.

Each is also the built-in one that a user catches (`functrans.core.errors`): an alias catches what
JAX raises under that name.
"""

from functrans.core.error_examples import EXAMPLES
from functrans.core.errors import (
    ArgumentError,
    AxisNameError,
    AxisSizeError,
    BackendError,
    BranchTypeError,
    CallbackError,
    CarryTypeError,
    CheckError,
    CollectiveError,
    ConcretizationError,
    CustomRuleError,
    DefectError,
    DeviceError,
    DeviceMemoryError,
    DonatedArrayError,
    DTypeError,
    ExportError,
    FailedCheckError,
    FunctransError,
    ImmutableArrayError,
    IndexingError,
    IntegerGradError,
    IntegerOverflowError,
    JaxprError,
    KeyReuseError,
    KeyTypeError,
    LeakedTracerError,
    MissingNameError,
    MissingRuleError,
    NonArrayError,
    NonScalarGradError,
    NotCoveredError,
    NotDifferentiableError,
    NotFiniteError,
    OutOfBoundsError,
    OutOfMemoryError,
    PromotionError,
    RegistrationError,
    ShapeError,
    ShardingError,
    StaticArgumentError,
    TreeMismatchError,
    explain_missing_names,
)
from functrans.core.example_text import with_example

ConcretizationTypeError = TracerArrayConversionError = TracerBoolConversionError = \
    TracerIntegerConversionError = ConcretizationError
NonConcreteBooleanIndexError = InconclusiveDimensionOperation = ConcretizationError
UnexpectedTracerError = LeakedTracerError
JAXTypeError = FunctransError
JAXIndexError = IndexingError
JaxprTypeError = JaxprError
JaxRuntimeError = BackendError

__all__ = [
    "ArgumentError", "AxisNameError", "AxisSizeError", "BackendError", "BranchTypeError",
    "CallbackError", "CarryTypeError", "CheckError", "CollectiveError", "ConcretizationError",
    "ConcretizationTypeError", "CustomRuleError", "DTypeError", "DefectError", "DeviceError",
    "DeviceMemoryError", "DonatedArrayError", "ExportError", "FailedCheckError", "FunctransError",
    "ImmutableArrayError", "InconclusiveDimensionOperation", "IndexingError", "IntegerGradError",
    "IntegerOverflowError", "JAXIndexError", "JAXTypeError", "JaxRuntimeError", "JaxprError",
    "JaxprTypeError", "KeyReuseError", "KeyTypeError", "LeakedTracerError", "MissingNameError",
    "MissingRuleError", "NonArrayError", "NonConcreteBooleanIndexError", "NonScalarGradError",
    "NotCoveredError", "NotDifferentiableError", "NotFiniteError", "OutOfBoundsError",
    "OutOfMemoryError", "PromotionError", "RegistrationError", "ShapeError", "ShardingError",
    "StaticArgumentError", "TracerArrayConversionError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "TreeMismatchError", "UnexpectedTracerError",
]

for _name, _example in EXAMPLES.items():
    globals()[_name].__doc__ = with_example(globals()[_name].__doc__, _example)

explain_missing_names(globals())
