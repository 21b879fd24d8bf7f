/* Felsenstein pruning under JC69 in plain C: the recursion of kernels/pruning.py over the same arrays, to measure it against.
 *
 * Built on the spot with `cc -O3 -march=native`. With -DPOLYNOMIAL_LOG the logarithm is the polynomial of kernels/logsum.py, which
 * the compiler can vectorise; without, it is the C library's.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 256
#define RESCALE_EVERY 16
#define TINY 0x1p-64
#define HUGE_FACTOR 0x1p64

/* out = message(x; u) * message(y; v), x and y of any of the two types; `sx`, `sy` are the strides between states. */
#define JOIN_TWO(NAME, X, Y)                                                                                              \
    static void NAME(double *restrict out, int width, const X *restrict x, long sx, double u, const Y *restrict y, long sy, \
                     double v)                                                                                            \
    {                                                                                                                     \
        const double qx = 0.25 * (1.0 - u), qy = 0.25 * (1.0 - v);                                                        \
        for (int p = 0; p < width; p++) {                                                                                 \
            const double x0 = x[p], x1 = x[sx + p], x2 = x[2 * sx + p], x3 = x[3 * sx + p];                               \
            const double y0 = y[p], y1 = y[sy + p], y2 = y[2 * sy + p], y3 = y[3 * sy + p];                               \
            const double a = qx * ((x0 + x1) + (x2 + x3)), b = qy * ((y0 + y1) + (y2 + y3));                              \
            out[p] = (a + u * x0) * (b + v * y0);                                                                         \
            out[BLOCK + p] = (a + u * x1) * (b + v * y1);                                                                 \
            out[2 * BLOCK + p] = (a + u * x2) * (b + v * y2);                                                             \
            out[3 * BLOCK + p] = (a + u * x3) * (b + v * y3);                                                             \
        }                                                                                                                 \
    }

/* out *= message(x; u) */
#define JOIN_ONE(NAME, X)                                                                                                 \
    static void NAME(double *restrict out, int width, const X *restrict x, long sx, double u)                             \
    {                                                                                                                     \
        const double q = 0.25 * (1.0 - u);                                                                                \
        for (int p = 0; p < width; p++) {                                                                                 \
            const double x0 = x[p], x1 = x[sx + p], x2 = x[2 * sx + p], x3 = x[3 * sx + p];                               \
            const double a = q * ((x0 + x1) + (x2 + x3));                                                                 \
            out[p] *= a + u * x0;                                                                                         \
            out[BLOCK + p] *= a + u * x1;                                                                                 \
            out[2 * BLOCK + p] *= a + u * x2;                                                                             \
            out[3 * BLOCK + p] *= a + u * x3;                                                                             \
        }                                                                                                                 \
    }

JOIN_TWO(join_tip_tip, uint8_t, uint8_t)
JOIN_TWO(join_tip_inner, uint8_t, double)
JOIN_TWO(join_inner_inner, double, double)
JOIN_ONE(join_tip, uint8_t)
JOIN_ONE(join_inner, double)

static double largest(const double *out, int p)
{
    const double a = fmax(out[p], out[BLOCK + p]), b = fmax(out[2 * BLOCK + p], out[3 * BLOCK + p]);
    return fmax(a, b);
}

static void rescale(double *out, int width, double *log_scale)
{
    double least = 1.0;
    for (int p = 0; p < width; p++)
        least = fmin(least, largest(out, p));
    if (least > TINY)
        return;
    for (int p = 0; p < width; p++) {
        double top = largest(out, p);
        while (top > 0.0 && top <= TINY) {
            for (int a = 0; a < 4; a++)
                out[a * BLOCK + p] *= HUGE_FACTOR;
            log_scale[p] -= 64.0 * M_LN2;
            top *= HUGE_FACTOR;
        }
    }
}

#ifdef POLYNOMIAL_LOG
static inline double logarithm(double value)
{
    int64_t bits, shifted;
    double mantissa;
    memcpy(&bits, &value, 8);
    const int64_t biased = (bits + (0x0010000000000000LL - 0x0006A09E667F3BCDLL)) >> 52;
    shifted = bits - (biased << 52) + 0x3FF0000000000000LL;
    memcpy(&mantissa, &shifted, 8);
    const double s = (mantissa - 1.0) / (mantissa + 1.0), t = s * s;
    double tail = 1.0 / 21.0;
    for (int k = 19; k >= 3; k -= 2)
        tail = 1.0 / k + t * tail;
    return (double)(int32_t)(biased - 1023) * M_LN2 + 2.0 * s * (1.0 + t * tail);
}
#else
#define logarithm log
#endif

/* The tree comes as the schedule of kernels/schedule.py: `order`, and children of v in child[start[v]] .. child[start[v + 1] - 1]. */
double log_likelihood(int n_order, const int32_t *order, const int32_t *start, const int32_t *child, const double *decay, int n_taxa,
                      long n_patterns, const uint8_t *tips, const double *counts, double *work, double *log_scale, int64_t *pending)
{
    double total = 0.0;
    for (long begin = 0; begin < n_patterns; begin += BLOCK) {
        const int width = n_patterns - begin < BLOCK ? (int)(n_patterns - begin) : BLOCK;
        memset(log_scale, 0, BLOCK * sizeof(double));
        double *out = work;
        for (int k = 0; k < n_order; k++) {
            const int vertex = order[k];
            int first = start[vertex];
            const int last = start[vertex + 1];
            int64_t multiplied = 0;
            out = work + (long)vertex * 4 * BLOCK;
#define TIPS(v) (tips + (long)(v) * 4 * n_patterns + begin)
#define INNER(v) (work + (long)(v) * 4 * BLOCK)
            if (vertex < n_taxa) {
                for (int a = 0; a < 4; a++)
                    for (int p = 0; p < width; p++)
                        out[a * BLOCK + p] = TIPS(vertex)[a * n_patterns + p];
            } else if (last - first == 1) {
                for (int a = 0; a < 4; a++)
                    for (int p = 0; p < width; p++)
                        out[a * BLOCK + p] = 1.0;
            } else {
                int c = child[first], d = child[first + 1];
                if (pending[c] >= 0 && pending[d] < 0) {
                    const int swap = c;
                    c = d;
                    d = swap;
                }
                if (pending[d] < 0) {
                    join_tip_tip(out, width, TIPS(c), n_patterns, decay[c], TIPS(d), n_patterns, decay[d]);
                } else if (pending[c] < 0) {
                    if (pending[d] >= RESCALE_EVERY) {
                        rescale(INNER(d), width, log_scale);
                        pending[d] = 1;
                    }
                    join_tip_inner(out, width, TIPS(c), n_patterns, decay[c], INNER(d), BLOCK, decay[d]);
                } else {
                    while (pending[c] + pending[d] > RESCALE_EVERY) {
                        const int larger = pending[c] > pending[d] ? c : d;
                        rescale(INNER(larger), width, log_scale);
                        pending[larger] = 1;
                    }
                    join_inner_inner(out, width, INNER(c), BLOCK, decay[c], INNER(d), BLOCK, decay[d]);
                }
                multiplied = (pending[c] < 0 ? 1 : pending[c]) + (pending[d] < 0 ? 1 : pending[d]);
                first += 2;
            }
            for (int i = first; i < last; i++) {
                const int c = child[i];
                if (multiplied >= RESCALE_EVERY) {
                    rescale(out, width, log_scale);
                    multiplied = 1;
                }
                if (pending[c] < 0) {
                    join_tip(out, width, TIPS(c), n_patterns, decay[c]);
                } else {
                    if (multiplied + pending[c] > RESCALE_EVERY) {
                        rescale(INNER(c), width, log_scale);
                        pending[c] = 1;
                    }
                    join_inner(out, width, INNER(c), BLOCK, decay[c]);
                }
                multiplied += pending[c] < 0 ? 1 : pending[c];
            }
            pending[vertex] = multiplied;
        }
        for (int p = 0; p < width; p++) {
            const double site = (out[p] + out[BLOCK + p]) + (out[2 * BLOCK + p] + out[3 * BLOCK + p]);
            total += counts[begin + p] * log_scale[p];
            log_scale[p] = 0.25 * site;
        }
        for (int p = 0; p < width; p++)
            total += counts[begin + p] * logarithm(log_scale[p]);
    }
    return total;
}
