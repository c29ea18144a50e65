/* What a small compiled decoder could be: of each line of JSON it copies the values that culturekit keeps, and checks
 * the rest as strictly as msgspec does, so that the Python decoder gives the same items for a line of a twelfth of the
 * size. A line it is unsure of (an escaped key, a surrogate, deep nesting) is copied whole. Portable x86-64 (SSE2). */
#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

typedef const uint8_t *Place;
typedef struct Node {
    const char *key;
    int length;
    const struct Node *children; /* none: the value is kept whole */
    int count;
    uint64_t lengths; /* a bit for each length that a child's key has */
} Node;

#define LEAF(key) {key, sizeof(key) - 1, 0, 0, 0}
enum { DEEPEST = 60 };
static Node terms[] = {LEAF("en"), LEAF("mul")};
static Node properties[] = {LEAF("P31"), LEAF("P279"), LEAF("P495"), LEAF("P17"), LEAF("P2012"),
                            LEAF("P361"), LEAF("P18"), LEAF("P625"), LEAF("P297"), LEAF("P1549")};
static Node fields[] = {LEAF("id"), LEAF("type"), {"labels", 6, terms, 2, 0}, {"descriptions", 12, terms, 2, 0},
                        {"aliases", 7, terms, 2, 0}, {"claims", 6, properties, 10, 0}, LEAF("sitelinks")};
static Node entity = {0, 0, fields, 7, 0};

static void note_lengths(Node *node) {
    for (int i = 0; i < node->count; i++) node->lengths |= 1ull << node->children[i].length;
}

static Place blank(Place p) {
    while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n') p++;
    return p;
}

static int is_hex(uint8_t c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f'); }

/* From after the opening quote to after the closing one; 0 where it is no string. 64 bytes may be read past the end. */
static Place string(Place p, Place end, int *escaped) {
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
    while (p < end) {
        __m128i some = _mm_loadu_si128((const __m128i *)p);
        int found = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(some, quote), _mm_cmpeq_epi8(some, slash)),
                                                   _mm_cmpeq_epi8(_mm_min_epu8(some, control), some)));
        if (!found) {
            p += 16;
            continue;
        }
        p += __builtin_ctz(found);
        if (p >= end) return 0;
        if (*p == '"') return p + 1;
        if (*p != '\\') return 0;
        *escaped = 1;
        if (p[1] == 'u') {
            for (int i = 2; i < 6; i++)
                if (!is_hex(p[i])) return 0;
            if ((p[2] | 32) == 'd' && p[3] >= '8') return 0;
            p += 6;
        } else if (p[1] && strchr("\"\\/bfnrt", p[1])) {
            p += 2;
        } else {
            return 0;
        }
    }
    return 0;
}

static Place digits(Place p) {
    if (*p < '0' || *p > '9') return 0;
    while (*p >= '0' && *p <= '9') p++;
    return p;
}

static Place number(Place p) {
    if (*p == '-') p++;
    p = *p == '0' ? p + 1 : digits(p);
    if (p && *p == '.') p = digits(p + 1);
    if (p && (*p | 32) == 'e') p = digits(p[1] == '+' || p[1] == '-' ? p + 2 : p + 1);
    return p;
}

/* From the beginning of a value to after it; 0 where it is none. */
static Place value(Place p, Place end, int depth) {
    int escaped = 0, object = *p == '{';
    uint8_t close = object ? '}' : ']';
    if (*p == '"') return string(p + 1, end, &escaped);
    if (*p == 't') return memcmp(p, "true", 4) ? 0 : p + 4;
    if (*p == 'f') return memcmp(p, "false", 5) ? 0 : p + 5;
    if (*p == 'n') return memcmp(p, "null", 4) ? 0 : p + 4;
    if (!object && *p != '[') return number(p);
    if (depth > DEEPEST) return 0;
    p = blank(p + 1);
    if (*p == close) return p + 1;
    for (;;) {
        if (object) {
            if (*p != '"' || !(p = string(p + 1, end, &escaped))) return 0;
            p = blank(p);
            if (*p++ != ':') return 0;
            p = blank(p);
        }
        if (!(p = value(p, end, depth + 1))) return 0;
        p = blank(p);
        if (*p == close) return p + 1;
        if (*p++ != ',') return 0;
        p = blank(p);
    }
}

static Place pruned(Place p, Place end, const Node *node, uint8_t **out) {
    if (!node->children || *p != '{') {
        Place after = value(p, end, 0);
        if (!after) return 0;
        memcpy(*out, p, after - p);
        *out += after - p;
        return after;
    }
    int kept = 0;
    *(*out)++ = '{';
    p = blank(p + 1);
    while (*p != '}') {
        int escaped = 0;
        Place key = p + 1, after = *p == '"' ? string(key, end, &escaped) : 0;
        if (!after || escaped) return 0;
        int length = (int)(after - 1 - key);
        const Node *hit = 0;
        if (length < 64 && node->lengths >> length & 1)
            for (int i = 0; i < node->count && !hit; i++)
                if (node->children[i].length == length && !memcmp(node->children[i].key, key, length))
                    hit = &node->children[i];
        Place held = blank(after);
        if (*held != ':') return 0;
        held = blank(held + 1);
        if (hit) {
            if (kept++) *(*out)++ = ',';
            memcpy(*out, p, after - p);
            *out += after - p;
            *(*out)++ = ':';
            p = pruned(held, end, hit, out);
        } else {
            p = value(held, end, 0);
        }
        if (!p) return 0;
        p = blank(p);
        if (*p == ',') {
            p = blank(p + 1);
            if (*p != '"') return 0;
        } else if (*p != '}') {
            return 0;
        }
    }
    *(*out)++ = '}';
    return p + 1;
}

/* Prune lines that each end with one; give the bytes written, at most as many as there were. */
long prune_lines(const uint8_t *lines, long size, uint8_t *out) {
    uint8_t *begin = out;
    Place end = lines + size;
    for (int i = 2; i < 6; i++) note_lengths(&fields[i]);
    note_lengths(&entity);
    for (Place p = lines, after; p < end; p = after + 1) {
        after = memchr(p, '\n', end - p);
        if (!after) after = end;
        long length = after - p - (after > p && after[-1] == ',');
        uint8_t *line = out;
        if (pruned(p, p + length, &entity, &out) != p + length) {
            memcpy(line, p, length);
            out = line + length;
        }
        *out++ = '\n';
    }
    return out - begin;
}
