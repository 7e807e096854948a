"""Distributions of random variables and statistics of samples, with the names of scipy.stats.

`norm.logpdf(x, loc, scale)`: arguments broadcast; `loc` moves and `scale` stretches a distribution,
and shape parameters stand before them. Outside its support the density of a distribution is 0 and
its logarithm -inf; impossible parameters give NaN. `norm.rvs(key, loc, scale, shape=(3,))` draws by
a key.
"""

import sys

from functrans.core.errors import explain_missing_names
from functrans.scipy.stats import contingency, qmc, sampling
from functrans.scipy.stats.anderson_darling import anderson, anderson_ksamp, goodness_of_fit
from functrans.scipy.stats.base import DistributionFamily
from functrans.scipy.stats.bayes import bayes_mvs, mvsdist
from functrans.scipy.stats.bins import (
    binned_statistic,
    binned_statistic_2d,
    binned_statistic_dd,
    cumfreq,
    relfreq,
)
from functrans.scipy.stats.bounded import (
    arcsine,
    beta,
    cosine,
    loguniform,
    powerlaw,
    semicircular,
    triang,
    truncexpon,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from functrans.scipy.stats.bounded_more import (
    anglit,
    argus,
    bradford,
    genhalflogistic,
    johnsonsb,
    levy_l,
    loglaplace,
    rdist,
    reciprocal,
    trapezoid,
    truncpareto,
    truncweibull_min,
    weibull_max,
)
from functrans.scipy.stats.cautions import (
    ConstantInputWarning,
    DegenerateDataWarning,
    NearConstantInputWarning,
)
from functrans.scipy.stats.comparisons import (
    alexandergovern,
    bartlett,
    binomtest,
    chi2_contingency,
    chisquare,
    combine_pvalues,
    f_oneway,
    false_discovery_control,
    levene,
    power_divergence,
)
from functrans.scipy.stats.correlations import pearsonr, spearmanr, spearmanrho
from functrans.scipy.stats.counts import (
    barnard_exact,
    boschloo_exact,
    page_trend_test,
    poisson_means_test,
)
from functrans.scipy.stats.covariance import Covariance
from functrans.scipy.stats.custom import rv_continuous, rv_discrete, rv_histogram
from functrans.scipy.stats.dependence import chatterjeexi, somersd, weightedtau
from functrans.scipy.stats.descriptive import (
    circmean,
    circstd,
    circvar,
    describe,
    differential_entropy,
    energy_distance,
    gstd,
    gzscore,
    kstat,
    kstatvar,
    median_abs_deviation,
    percentileofscore,
    pmean,
    scoreatpercentile,
    tmax,
    tmean,
    tmin,
    trim_mean,
    tsem,
    tstd,
    tvar,
    variation,
    wasserstein_distance,
    zmap,
)
from functrans.scipy.stats.discrete import (
    bernoulli,
    betabinom,
    binom,
    boltzmann,
    dlaplace,
    geom,
    hypergeom,
    logser,
    nbinom,
    planck,
    poisson,
    randint,
    zipf,
)
from functrans.scipy.stats.empirical import ksone, kstwo, kstwobign
from functrans.scipy.stats.fits import fit
from functrans.scipy.stats.fitting import CensoredData, FitError
from functrans.scipy.stats.gamma_powers import chi, chi2, gamma, maxwell, nakagami
from functrans.scipy.stats.goodness import (
    cramervonmises,
    cramervonmises_2samp,
    epps_singleton_2samp,
)
from functrans.scipy.stats.graph_correlation import multiscale_graphcorr
from functrans.scipy.stats.half_line import (
    betaprime,
    f,
    fisk,
    halfcauchy,
    halflogistic,
    halfnorm,
    invgamma,
    invgauss,
    levy,
    lognorm,
)
from functrans.scipy.stats.hyperbolic import (
    gausshyper,
    genhyperbolic,
    geninvgauss,
    norminvgauss,
    rel_breitwigner,
)
from functrans.scipy.stats.lines import (
    kendalltau,
    linregress,
    pointbiserialr,
    siegelslopes,
    theilslopes,
)
from functrans.scipy.stats.matrices import (
    matrix_normal,
    multivariate_t,
    ortho_group,
    special_ortho_group,
    unitary_group,
    wishart,
)
from functrans.scipy.stats.means import ttest_1samp, ttest_ind, ttest_ind_from_stats, ttest_rel
from functrans.scipy.stats.methods import BootstrapMethod, MonteCarloMethod, PermutationMethod
from functrans.scipy.stats.mixtures import MixtureVariable as Mixture
from functrans.scipy.stats.mixtures import order_statistic
from functrans.scipy.stats.more_half_line import (
    alpha,
    burr,
    burr12,
    erlang,
    exponpow,
    exponweib,
    fatiguelife,
    foldcauchy,
    foldnorm,
    gengamma,
    gibrat,
    halfgennorm,
    invweibull,
    kappa3,
    mielke,
    powerlognorm,
    recipinvgauss,
    wald,
)
from functrans.scipy.stats.more_multivariate import (
    dirichlet_multinomial,
    invwishart,
    matrix_t,
    multivariate_hypergeom,
    normal_inverse_gamma,
    random_correlation,
    random_table,
    uniform_direction,
    vonmises_fisher,
)
from functrans.scipy.stats.more_real_line import (
    dgamma,
    dweibull,
    genextreme,
    genlogistic,
    laplace_asymmetric,
    loggamma,
    moyal,
    pearson3,
    powernorm,
    skewcauchy,
    yulesimon,
)
from functrans.scipy.stats.multiple import dunnett, tukey_hsd
from functrans.scipy.stats.multivariate import dirichlet, multinomial, multivariate_normal
from functrans.scipy.stats.noncentral import ncx2, rice, skellam
from functrans.scipy.stats.noncentral_ratios import ncf, nct, studentized_range
from functrans.scipy.stats.normality import jarque_bera, kurtosistest, normaltest, shapiro, skewtest
from functrans.scipy.stats.normalizing import (
    boxcox,
    boxcox_llf,
    boxcox_normmax,
    yeojohnson,
    yeojohnson_llf,
    yeojohnson_normmax,
)
from functrans.scipy.stats.orders import expectile, lmoment, quantile, quantile_test
from functrans.scipy.stats.plots import (
    boxcox_normplot,
    ppcc_max,
    ppcc_plot,
    probplot,
    yeojohnson_normplot,
)
from functrans.scipy.stats.ranks import (
    brunnermunzel,
    friedmanchisquare,
    kruskal,
    ks_1samp,
    ks_2samp,
    kstest,
    mannwhitneyu,
    ranksums,
    wilcoxon,
)
from functrans.scipy.stats.real_line import (
    cauchy,
    exponnorm,
    gennorm,
    gumbel_l,
    gumbel_r,
    hypsecant,
    johnsonsu,
    laplace,
    logistic,
    norm,
    skewnorm,
    t,
)
from functrans.scipy.stats.resampling import bootstrap, monte_carlo_test, permutation_test, power
from functrans.scipy.stats.scales import ansari, bws_test, fligner, mood, obrientransform
from functrans.scipy.stats.sensitivity import sobol_indices
from functrans.scipy.stats.skewed import (
    crystalball,
    dpareto_lognorm,
    genexpon,
    jf_skew_t,
    kappa4,
    vonmises_line,
)
from functrans.scipy.stats.stable import landau, levy_stable
from functrans.scipy.stats.statistics import (
    entropy,
    gaussian_kde,
    gmean,
    hmean,
    iqr,
    kurtosis,
    mode,
    moment,
    rankdata,
    sem,
    skew,
    zscore,
)
from functrans.scipy.stats.sums import irwinhall, tukeylambda
from functrans.scipy.stats.survival import ecdf, logrank
from functrans.scipy.stats.tables import fisher_exact, median_test
from functrans.scipy.stats.tailed import (
    expon,
    genpareto,
    gompertz,
    lomax,
    pareto,
    rayleigh,
    weibull_min,
)
from functrans.scipy.stats.transport import wasserstein_distance_nd
from functrans.scipy.stats.trimming import directional_stats, sigmaclip, tiecorrect, trim1, trimboth
from functrans.scipy.stats.urns import (
    betanbinom,
    nchypergeom_fisher,
    nchypergeom_wallenius,
    nhypergeom,
    poisson_binom,
    zipfian,
)
from functrans.scipy.stats.variable_kinds import BinomialVariable as Binomial
from functrans.scipy.stats.variable_kinds import LogisticVariable as Logistic
from functrans.scipy.stats.variable_kinds import NormalVariable as Normal
from functrans.scipy.stats.variable_kinds import UniformVariable as Uniform
from functrans.scipy.stats.variable_kinds import make_distribution
from functrans.scipy.stats.variables import abs_of as abs
from functrans.scipy.stats.variables import exp_of as exp
from functrans.scipy.stats.variables import log_of as log
from functrans.scipy.stats.variables import truncate

__all__ = [
    "Binomial", "BootstrapMethod", "CensoredData", "ConstantInputWarning", "Covariance",
    "DegenerateDataWarning", "FitError", "Logistic", "Mixture", "MonteCarloMethod",
    "NearConstantInputWarning", "Normal", "PermutationMethod", "Uniform", "abs",
    "alexandergovern", "alpha", "anderson", "anderson_ksamp", "anglit", "ansari", "arcsine",
    "argus", "barnard_exact", "bartlett", "bayes_mvs", "bernoulli", "beta", "betabinom",
    "betanbinom", "betaprime", "binned_statistic", "binned_statistic_2d", "binned_statistic_dd",
    "binom", "binomtest", "boltzmann", "bootstrap", "boschloo_exact", "boxcox", "boxcox_llf",
    "boxcox_normmax", "boxcox_normplot", "bradford", "brunnermunzel", "burr", "burr12",
    "bws_test", "cauchy", "chatterjeexi", "chi", "chi2", "chi2_contingency", "chisquare",
    "circmean", "circstd", "circvar", "combine_pvalues", "contingency", "cosine",
    "cramervonmises", "cramervonmises_2samp", "crystalball", "cumfreq", "describe", "dgamma",
    "differential_entropy", "directional_stats", "dirichlet", "dirichlet_multinomial", "dlaplace",
    "dpareto_lognorm", "dunnett", "dweibull", "ecdf", "energy_distance", "entropy",
    "epps_singleton_2samp", "erlang", "exp", "expectile", "expon", "exponnorm", "exponpow",
    "exponweib", "f", "f_oneway", "false_discovery_control", "fatiguelife", "fisher_exact",
    "fisk", "fit", "fligner", "foldcauchy", "foldnorm", "friedmanchisquare", "gamma",
    "gausshyper", "gaussian_kde", "genexpon", "genextreme", "gengamma", "genhalflogistic",
    "genhyperbolic", "geninvgauss", "genlogistic", "gennorm", "genpareto", "geom", "gibrat",
    "gmean", "gompertz", "goodness_of_fit", "gstd", "gumbel_l", "gumbel_r", "gzscore",
    "halfcauchy", "halfgennorm", "halflogistic", "halfnorm", "hmean", "hypergeom", "hypsecant",
    "invgamma", "invgauss", "invweibull", "invwishart", "iqr", "irwinhall", "jarque_bera",
    "jf_skew_t", "johnsonsb", "johnsonsu", "kappa3", "kappa4", "kendalltau", "kruskal",
    "ks_1samp", "ks_2samp", "ksone", "kstat", "kstatvar", "kstest", "kstwo", "kstwobign",
    "kurtosis", "kurtosistest", "landau", "laplace", "laplace_asymmetric", "levene", "levy",
    "levy_l", "levy_stable", "linregress", "lmoment", "log", "loggamma", "logistic", "loglaplace",
    "lognorm", "logrank", "logser", "loguniform", "lomax", "make_distribution", "mannwhitneyu",
    "matrix_normal", "matrix_t", "maxwell", "median_abs_deviation", "median_test", "mielke",
    "mode", "moment", "monte_carlo_test", "mood", "moyal", "multinomial", "multiscale_graphcorr",
    "multivariate_hypergeom", "multivariate_normal", "multivariate_t", "mvsdist", "nakagami",
    "nbinom", "ncf", "nchypergeom_fisher", "nchypergeom_wallenius", "nct", "ncx2", "nhypergeom",
    "norm", "normal_inverse_gamma", "normaltest", "norminvgauss", "obrientransform",
    "order_statistic", "ortho_group", "page_trend_test", "pareto", "pearson3", "pearsonr",
    "percentileofscore", "permutation_test", "planck", "pmean", "pointbiserialr", "poisson",
    "poisson_binom", "poisson_means_test", "power", "power_divergence", "powerlaw",
    "powerlognorm", "powernorm", "ppcc_max", "ppcc_plot", "probplot", "qmc", "quantile",
    "quantile_test", "randint", "random_correlation", "random_table", "rankdata", "ranksums",
    "rayleigh", "rdist", "recipinvgauss", "reciprocal", "rel_breitwigner", "relfreq", "rice",
    "rv_continuous", "rv_discrete", "rv_histogram", "sampling", "scoreatpercentile", "sem",
    "semicircular",
    "shapiro", "siegelslopes", "sigmaclip", "skellam", "skew", "skewcauchy", "skewnorm",
    "skewtest", "sobol_indices", "somersd", "spearmanr", "spearmanrho", "special_ortho_group",
    "studentized_range", "t", "theilslopes", "tiecorrect", "tmax", "tmean", "tmin", "trapezoid",
    "triang", "trim1", "trim_mean", "trimboth", "truncate", "truncexpon", "truncnorm",
    "truncpareto", "truncweibull_min", "tsem", "tstd", "ttest_1samp", "ttest_ind",
    "ttest_ind_from_stats", "ttest_rel", "tukey_hsd", "tukeylambda", "tvar", "uniform",
    "uniform_direction", "unitary_group", "variation", "vonmises", "vonmises_fisher",
    "vonmises_line", "wald", "wasserstein_distance", "wasserstein_distance_nd", "weibull_max",
    "weibull_min", "weightedtau", "wilcoxon", "wishart", "wrapcauchy", "yeojohnson",
    "yeojohnson_llf", "yeojohnson_normmax", "yeojohnson_normplot", "yulesimon", "zipf", "zipfian",
    "zmap", "zscore",
]

sys.modules.update({value.__name__: value for value in tuple(globals().values())
                    if isinstance(value, DistributionFamily)})
explain_missing_names(globals())
