"""Functions with as many terms as their operands ask for, in float64: a program goes on until none
of its lanes needs another one.

The methods are those of the references (`csrc/incomplete_gamma.cpp`, `csrc/special.cpp`): power
series left of the peak and continued fraction right of it (DLMF 8.11.4 and 8.9.2), Temme's uniform
expansion for huge shapes (DLMF 8.12.3), Euler and Maclaurin's sum. `host_math` interprets this very
text.
"""

# types are Triton's: functions here are compiled for the device
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def _pi_cotangent(r):
    """pi cot(pi r) for |r| <= 1/2, from the nearer of its pole and its zero."""
    is_near_zero = tl.abs(r) > 0.25
    angle = 3.141592653589793 * tl.where(is_near_zero, 0.5 - tl.abs(r), tl.abs(r))
    tangent = libdevice.tan(angle)
    size = 3.141592653589793 * tl.where(is_near_zero, tangent, 1 / tangent)
    return tl.where(r < 0, -size, size)


@triton.jit
def digamma(x):
    """Up to 3 a rational function times the distance from the zero, which has two parts; above it
    log(x - 1/2) and a polynomial in (x - 1/2)^-2. From x + 1 below 1, at -x from x (DLMF 5.5.2 and
    5.5.4). The coefficients are those of `c/math/gamma_f64.c`."""
    x64 = x.to(tl.float64)
    a = tl.abs(x64)
    y = tl.where(a < 1, a + 1, a)
    lost = tl.where(a < 1, a - (y - 1), 0)
    s = y - 0.75
    p = 0.713373848538219 + s * (0.4691728974661791 + s * (-0.3760470358002863 + s * (
        -0.3701591038038892 + s * (-0.09859350252092935 + s * (
            -0.009620551972928635 + s * -0.00027371936934385104)))))
    q = 1 + s * (2.6590335014909185 + s * (2.3842381182279193 + s * (0.9451773996692513 + s * (
        0.1741133651841502 + s * (0.013753040198284671 + s * (
            0.000342765571093042 + s * -3.969928833372716e-08))))))
    slope = 0.8125 + p / q
    near = (y - 1.4616321449683622) * slope + (lost - 9.549995429965697e-17) * slope
    h = y - 0.5
    v = 1 / (h * h)
    tail = 0.04166666666665104 + v * (-0.007291666659374865 + v * (0.0038442447898823307 + v * (
        -0.0041340044901391525 + v * (0.0075550157759640925 + v * (-0.020868176963889148 + v * (
            0.07782815507077603 + v * (-0.3375057406698206 + v * (1.434888138089133 + v * (
                -5.138480559794454 + v * (13.593781621163535 + v * (
                    -22.811802433388653 + v * 17.917613017677002)))))))))))
    value = tl.where(y > 3, libdevice.log(h) + v * tail, near)
    r = a - libdevice.rint(a)
    at_negative = _pi_cotangent(r) + tl.where(a < 1, value, value + 1 / a)
    at_negative = tl.where((r == 0) | (a == float("inf")), float("nan"), at_negative)
    at_positive = tl.where(a < 1, value - 1 / a, value)
    return tl.where(x64 <= 0, at_negative, at_positive).to(x.dtype)


@triton.jit
def _any(lanes):
    """Whether a condition holds in a lane; of a scalar, whether it holds."""
    return tl.max(lanes.to(tl.int32) + tl.zeros([1], tl.int32)) > 0


@triton.jit
def _log1p_minus(m):
    """log(1 + m) - m: with r = m / (2 + m), log1p(m) = 2 atanh(r) and 2 r - m = -r m."""
    r = m / (2 + m)
    square = r * r
    total = square * 0
    for k in tl.static_range(24):
        total = total * square + 1.0 / (49 - 2 * k)
    near = 2 * total * square * r - r * m
    return tl.where((m < -0.6) | (m > 1.5), libdevice.log1p(m) - m, near)


@triton.jit
def _stirling_error(a):
    """log Gamma(a) - ((a - 1/2) log a - a + log(2 pi) / 2) for a >= 10."""
    z = 1 / (a * a)
    return (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * (
        691 / 360360 - z * (1 / 156 - z * 3617 / 122400))))))) / a


@triton.jit
def _prefactor(a, x):
    """x^a e^-x / Gamma(a + 1)."""
    small = tl.minimum(tl.maximum(a, 0.0), 10.0)
    power = tl.where(x < 600, libdevice.pow(x, small) * libdevice.exp(-x),
                     libdevice.exp(small * libdevice.log(x) - x))
    m = (x - a) / a
    # of an x far below a, 1 + m has not the digits of x
    away = tl.where(m < -0.6, libdevice.log(x / a) - m, _log1p_minus(m))
    exponent = a * away - _stirling_error(a)
    return tl.where(a < 10, power / libdevice.tgamma(small + 1),
                    libdevice.exp(exponent) / libdevice.sqrt(6.283185307179586 * a))


@triton.jit
def _lower_series(a, x, lanes, precision: tl.constexpr, slopes: tl.constexpr):
    """The sum over n of x^n / ((a+1) ... (a+n)), and with `slopes` its derivative in a."""
    value = a * 0 + 1
    term = value
    log_slope = value - 1
    slope = log_slope
    n = 0
    while _any(lanes):
        for _ in tl.static_range(4):
            n += 1
            step = 1 / (a + n)
            term = term * (x * step)
            value = value + term
            if slopes:
                log_slope = log_slope - step
                slope = slope + term * log_slope
        lanes = lanes & ((term * (1 - log_slope) >= precision * value) | (a + n <= x)) \
            & (n < 200000)
    return value, slope


@triton.jit
def _upper_fraction(a, x, lanes, precision: tl.constexpr, slopes: tl.constexpr):
    """1 / (x+1-a - 1(1-a) / (x+3-a - 2(2-a) / (x+5-a - ...))) by the modified Lentz algorithm."""
    b = x + 1 - a
    c = a * 0 + 1e300
    c_slope = c * 0
    d = 1 / b
    d_slope = d * d
    value = d
    slope = d_slope
    n = 0
    while _any(lanes):
        n += 1
        top = n * (a - n)
        b = b + 2
        next_d = top * d + b
        next_d = tl.where(next_d == 0, 1e-300, next_d)
        ratio = 1 / c
        front = b + top * ratio
        if slopes:
            d_slope = n * d + top * d_slope - 1
            c_slope = (n - top * c_slope * ratio) * ratio - 1
        d = 1 / next_d
        c = tl.where(front == 0, 1e-300, front)
        delta = c * d
        going = tl.abs(delta - 1) >= precision
        if slopes:
            d_slope = -d_slope * d * d
            delta_slope = c_slope * d + c * d_slope
            slope = slope * delta + value * delta_slope
            value = value * delta
            going = going | (tl.abs(value * delta_slope) > precision * tl.abs(slope))
        else:
            value = value * delta
        lanes = lanes & going & (n < 200000)
    return value, slope


@triton.jit
def _uniform(a, x, lower: tl.constexpr):
    """P or Q of a huge shape, near the peak."""
    m = (x - a) / a
    half = tl.maximum(-_log1p_minus(m), 0.0)  # eta^2 / 2
    size = libdevice.sqrt(2 * half)
    eta = tl.where(m < 0, -size, size)
    near = -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta / 864))
    c0 = tl.where(tl.abs(m) < 1e-2, near, 1 / m - 1 / eta)
    correction = libdevice.exp(-a * half) / libdevice.sqrt(6.283185307179586 * a) * c0
    z = eta * libdevice.sqrt(0.5 * a)
    sign = -1.0 if lower else 1.0
    return 0.5 * libdevice.erfc(sign * z) + sign * correction


@triton.jit
def _near_one(a, x):
    """Q for a, x < 1: 1 - P loses digits where P is near one."""
    # log Gamma(1 + a), for a near 0 by its series, as 1 + a has not the digits of a
    series = a * (-0.57721566490153286061 + a * (0.82246703342411321824 + a * (
        -0.40068563438653142847 + a * (0.27058080842778454788 - a * 0.20738555102867398527))))
    log_power = a * libdevice.log(x) - tl.where(a > 1e-3, libdevice.lgamma(a + 1), series)
    term = a * 0 + 1
    total = term - 1
    for n in tl.static_range(1, 20):
        term = term * (-x / n)
        total = total + term / (a + n)
    return -libdevice.expm1(log_power) - libdevice.exp(log_power) * a * total


@triton.jit
def _regularized(a, x, lower: tl.constexpr, precision: tl.constexpr):
    infinite = float("inf")
    invalid = (a != a) | (x != x) | (a < 0) | (x < 0) | ((a == 0) & (x == 0)) \
        | ((a == infinite) & (x == infinite))
    whole = (a == 0) | (x == infinite)
    nothing = (x == 0) | (a == infinite)
    huge = (a > 1e7) & (tl.abs(x - a) < 0.3 * a)
    left = (x <= 1) | (x < a)
    front = _prefactor(a, x)
    lanes = (front != 0) & ~(invalid | whole | nothing | huge)
    series, _ = _lower_series(a, x, lanes & left, precision, False)
    fraction, _ = _upper_fraction(a, x, lanes & ~left, 10 * precision, False)
    below = tl.where(front == 0, 0.0, tl.minimum(front * series, 1.0))
    above = tl.where(front == 0, 0.0, front * a * fraction)
    if lower:
        found = tl.where(left, below, 1 - above)
    else:
        one_sided = tl.where((a < 1) & (x <= 1), _near_one(a, x), 1 - below)
        found = tl.where(left, one_sided, above)
    found = tl.where(huge, _uniform(a, x, lower), found)
    edge = 1.0 if lower else 0.0
    found = tl.where(nothing, 1.0 - edge, found)
    found = tl.where(whole, edge, found)
    return tl.where(invalid, float("nan"), found)


@triton.jit
def igamma(a, x):
    """The regularized lower incomplete gamma function P(a, x)."""
    precision: tl.constexpr = 1e-17 if x.dtype == tl.float64 else 1e-10
    a, x = tl.broadcast(a, x)
    return _regularized(a.to(tl.float64), x.to(tl.float64), True, precision).to(x.dtype)


@triton.jit
def igammac(a, x):
    """The regularized upper incomplete gamma function Q(a, x)."""
    precision: tl.constexpr = 1e-17 if x.dtype == tl.float64 else 1e-10
    a, x = tl.broadcast(a, x)
    return _regularized(a.to(tl.float64), x.to(tl.float64), False, precision).to(x.dtype)


@triton.jit
def random_gamma_grad(shape, sample):
    """dx/da of a sample at constant P(a, x): -(dP/da) / (dP/dx), where x^(a-1) e^-x cancels."""
    precision: tl.constexpr = 1e-17 if sample.dtype == tl.float64 else 1e-10
    shape, sample = tl.broadcast(shape, sample)
    a, x = shape.to(tl.float64), sample.to(tl.float64)
    infinite = float("inf")
    valid = (a > 0) & ((x == 0) | ((x > 0) & (a < infinite) & (x < infinite)))
    huge = a > 1e7
    left = (x <= 1) | (x < a)
    lanes = valid & (x > 0) & ~huge
    value, slope = _lower_series(a, x, lanes & left, precision, True)
    log_x = libdevice.log(x)
    below = -(x / a) * (value * (log_x - digamma(a + 1)) + slope)
    value, slope = _upper_fraction(a, x, lanes & ~left, 10 * precision, True)
    above = x * (value * (log_x - digamma(a)) + slope)
    t = x - a  # x = a + n sqrt(a) + (n^2 - 1) / 3 + ... at a fixed normal deviate n
    far = 1 + (t - (t * t / a - 1) / 3) / (2 * a)
    found = tl.where(huge, far, tl.where(left, below, above))
    found = tl.where(x == 0, 0.0, found)
    return tl.where(valid, found, float("nan")).to(sample.dtype)


@triton.jit
def zeta(x, q):
    """The Hurwitz zeta function, the sum of (q + k)^-x over k >= 0.

    Terms left of the origin, of either sign; ten terms, the integral, and Bernoulli's corrections.
    """
    x, q = tl.broadcast(x, q)
    s, a = x.to(tl.float64), q.to(tl.float64)
    whole, whole_q = libdevice.floor(s) == s, libdevice.floor(a) == a
    invalid = (s != s) | (a != a) | (s < 1) | ((s != 1) & (a <= 0) & ~whole_q
                                              & (~whole | (a <= -1e6)))
    infinite = (s == 1) | ((a <= 0) & whole_q)
    lanes = (a < 0) & ~(invalid | infinite)
    total = tl.where(a == a, 0.0, a)
    while _any(lanes):
        total = total + tl.where(lanes, libdevice.pow(a, -s), 0.0)
        a = tl.where(lanes, a + 1, a)
        lanes = lanes & (a < 0)
    for _ in range(10):
        total = total + libdevice.pow(a, -s)
        a = a + 1
    power = libdevice.pow(a, -s)
    z = 1 / (a * a)
    tail = (s + 21) * (s + 22) * z * -1.3954464685812523e-19 + 5.509002828360229e-18
    tail = (s + 19) * (s + 20) * z * tail - 2.174868698558062e-16
    tail = (s + 17) * (s + 18) * z * tail + 8.586062056277845e-15
    tail = (s + 15) * (s + 16) * z * tail - 3.389680296322583e-13
    tail = (s + 13) * (s + 14) * z * tail + 1.3382536530684679e-11
    tail = (s + 11) * (s + 12) * z * tail - 5.284190138687493e-10
    tail = (s + 9) * (s + 10) * z * tail + 2.08767569878681e-08
    tail = (s + 7) * (s + 8) * z * tail - 8.267195767195768e-07
    tail = (s + 5) * (s + 6) * z * tail + 3.306878306878307e-05
    tail = (s + 3) * (s + 4) * z * tail - 1 / 720
    tail = (s + 1) * (s + 2) * z * tail + 1 / 12
    rest = power * (a / (s - 1) + 0.5 + s * tail / a)
    total = tl.where(power <= 1e-18 * tl.abs(total), total, total + rest)
    total = tl.where(infinite, float("inf"), total)
    return tl.where(invalid, float("nan"), total).to(x.dtype)
