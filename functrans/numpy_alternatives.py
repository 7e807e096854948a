"""What stands in functrans for a NumPy or SciPy function that traced arrays cannot go through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["SPECIAL", "alternative"]

# ufuncs of scipy.special that functrans.scipy.special has
SPECIAL: Final = frozenset({
    "agm", "airy", "airye", "bdtr", "bdtrc", "bdtri", "bdtrik", "bdtrin", "bei", "beip", "ber",
    "berp", "besselpoly", "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln",
    "binom", "boxcox", "boxcox1p", "btdtria", "btdtrib", "cbrt", "chdtr", "chdtrc", "chdtri",
    "chdtriv", "chndtr", "chndtridf", "chndtrinc", "chndtrix", "cosdg", "cosm1", "cotdg",
    "dawsn", "digamma", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1",
    "elliprc", "elliprd", "elliprf", "elliprg", "elliprj", "entr", "erf", "erfc", "erfcinv",
    "erfcx", "erfi", "erfinv", "eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu",
    "eval_gegenbauer", "eval_genlaguerre", "eval_hermite", "eval_hermitenorm", "eval_jacobi",
    "eval_laguerre", "eval_legendre", "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_jacobi",
    "eval_sh_legendre", "exp1", "exp10", "exp2", "expi", "expit", "expm1", "expn", "exprel",
    "fdtr", "fdtrc", "fdtri", "fdtridfd", "fresnel", "gamma", "gammainc", "gammaincc",
    "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "gdtr", "gdtrc", "gdtria", "gdtrib",
    "gdtrix", "hankel1", "hankel1e", "hankel2", "hankel2e", "huber", "hyp0f1", "hyp1f1",
    "hyp2f1", "hyperu", "i0", "i0e", "i1", "i1e", "inv_boxcox", "inv_boxcox1p", "it2i0k0",
    "it2j0y0", "it2struve0", "itairy", "iti0k0", "itj0y0", "itmodstruve0", "itstruve0", "iv",
    "ive", "j0", "j1", "jn", "jv", "jve", "k0", "k0e", "k1", "k1e", "kei", "keip", "kelvin",
    "ker", "kerp", "kl_div", "kn", "kolmogi", "kolmogorov", "kv", "kve", "log1p", "log_expit",
    "log_ndtr", "log_wright_bessel", "loggamma", "logit", "lpmv", "mathieu_a", "mathieu_b",
    "mathieu_cem", "mathieu_modcem1", "mathieu_modcem2", "mathieu_modsem1", "mathieu_modsem2",
    "mathieu_sem", "modfresnelm", "modfresnelp", "modstruve", "nbdtr", "nbdtrc", "nbdtri",
    "nbdtrik", "nbdtrin", "ncfdtr", "ncfdtri", "ncfdtridfd", "ncfdtridfn", "ncfdtrinc",
    "nctdtr", "nctdtridf", "nctdtrinc", "nctdtrit", "ndtr", "ndtri", "ndtri_exp", "nrdtrimn",
    "nrdtrisd", "obl_ang1", "obl_ang1_cv", "obl_cv", "obl_rad1", "obl_rad1_cv", "obl_rad2",
    "obl_rad2_cv", "owens_t", "pbdv", "pbvv", "pbwa", "pdtr", "pdtrc", "pdtri", "pdtrik",
    "poch", "powm1", "pro_ang1", "pro_ang1_cv", "pro_cv", "pro_rad1", "pro_rad1_cv", "pro_rad2",
    "pro_rad2_cv", "pseudo_huber", "psi", "radian", "rel_entr", "rgamma", "round", "shichi",
    "sici", "sindg", "smirnov", "smirnovi", "spence", "stdtr", "stdtridf", "stdtrit", "struve",
    "tandg", "tklmbda", "voigt_profile", "wofz", "wright_bessel", "wrightomega", "xlog1py",
    "xlogy", "y0", "y1", "yn", "yv", "yve", "zetac"})

_AT: Final = "x = x.at[index].{}(y) on functrans arrays (functrans.numpy.asarray(x) makes one)"

_ALTERNATIVES: Final[Mapping[str, str]] = {
    "np.copyto": "functrans.numpy.where(where, src, dst), or functrans.numpy.broadcast_to(src, "
                 "dst.shape)",
    "np.fill_diagonal": "x = functrans.numpy.fill_diagonal(x, value, inplace=False)",
    "np.place": "x = functrans.numpy.place(x, mask, values, inplace=False)",
    "np.put": "x = functrans.numpy.put(x, index, values, inplace=False)",
    "np.putmask": "x = functrans.numpy.where(mask, values, x)",
    "np.put_along_axis": "x = functrans.numpy.put_along_axis(x, index, values, axis, "
                         "inplace=False)",
    "np.add.at": _AT.format("add"),
    "np.subtract.at": _AT.format("subtract"),
    "np.multiply.at": _AT.format("multiply"),
    "np.divide.at": _AT.format("divide"),
    "np.power.at": _AT.format("power"),
    "np.maximum.at": _AT.format("max"),
    "np.minimum.at": _AT.format("min"),
    "np.isnat": "functrans.numpy.isnan(x) on floating numbers",
    "np.trapz": "functrans.numpy.trapezoid(y, x)",
    "np.array2string": "functrans.debug.print(\"{x}\", x=x)",
}


def alternative(name: str, func: Any) -> str:
    """The fix for a traced argument of a function, as code that names what functrans has."""
    known = _ALTERNATIVES.get(name)
    if known is not None:
        return known
    if name.endswith(".at"):
        return "x = x.at[index].apply(f), and x.at[index].set(y): functrans.numpy.asarray(x) " \
               "makes an array that has them"
    bare = func.__name__
    if not name.startswith("np.") and bare in SPECIAL:
        return f"functrans.scipy.special.{bare}(...)"
    if name.startswith("np.testing."):
        return "functrans.check(condition, message), or compare the result of the function"
    return (f"functrans.pure_callback({name if name.startswith('np.') else bare}, result, x), or "
            "a composition of functions in functrans.numpy")
