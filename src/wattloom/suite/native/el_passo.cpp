// el-passo: an anonymous credential for single sign-on, from the request to the relying party's check.
//
// The protocol is that of EL PASSO, on the signatures of Pointcheval and Sanders over BLS12-381, by blst:
//   request  the user commits to attributes, with a blinding t:        C = g^t * Y_1^m_1 * ... * Y_n^m_n
//   provide  the identity provider signs what it cannot read:          (g^u, (X * C)^u)
//   unblind  the user takes t out again and checks the signature:      e(s1, X~ * Y~_1^m_1 ...) = e(s2, g~)
//   prove    the user shows the signature under another guise, one attribute, and that he knows the others
//   verify   the relying party checks the proof and the pairing; it does the same with a proof that was changed
// All chance comes from the seed, so that every build comes to the same bytes. (A real service must not do that.)
//
// One source for x86-64, aarch64 and wasm32-wasi. It uses no library of C++, which the last has not.

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "blst.h"
#include "blst_aux.h"
#include "wattloom.h"

namespace {

const int kAttributes = 4;
const int kShown = 3;  // the attribute that is shown; the others are only known
const size_t kBits = 255;
const size_t kDigest = 32;

// -- numbers and points -----------------------------------------------------------------------------------------------

struct Scalar {
    blst_fr value;
};

Scalar ScalarOf(const byte *wide, size_t size) {
    blst_scalar reduced;
    blst_scalar_from_be_bytes(&reduced, wide, size);
    Scalar out;
    blst_fr_from_scalar(&out.value, &reduced);
    return out;
}

Scalar operator+(const Scalar &a, const Scalar &b) {
    Scalar out;
    blst_fr_add(&out.value, &a.value, &b.value);
    return out;
}

Scalar operator-(const Scalar &a, const Scalar &b) {
    Scalar out;
    blst_fr_sub(&out.value, &a.value, &b.value);
    return out;
}

Scalar operator*(const Scalar &a, const Scalar &b) {
    Scalar out;
    blst_fr_mul(&out.value, &a.value, &b.value);
    return out;
}

struct G1 {
    typedef blst_p1 Point;
    static const size_t kSize = 48;
    static void Multiply(Point *out, const Point *p, const byte *scalar) { blst_p1_mult(out, p, scalar, kBits); }
    static void Add(Point *out, const Point *a, const Point *b) { blst_p1_add_or_double(out, a, b); }
    static void Negate(Point *p) { blst_p1_cneg(p, true); }
    static void Compress(byte *out, const Point *p) { blst_p1_compress(out, p); }
    static const Point *Generator() { return blst_p1_generator(); }
};

struct G2 {
    typedef blst_p2 Point;
    static const size_t kSize = 96;
    static void Multiply(Point *out, const Point *p, const byte *scalar) { blst_p2_mult(out, p, scalar, kBits); }
    static void Add(Point *out, const Point *a, const Point *b) { blst_p2_add_or_double(out, a, b); }
    static void Negate(Point *p) { blst_p2_cneg(p, true); }
    static void Compress(byte *out, const Point *p) { blst_p2_compress(out, p); }
    static const Point *Generator() { return blst_p2_generator(); }
};

template <class Group>
struct Element {
    typename Group::Point point;
};

template <class Group>
Element<Group> Generator() {
    Element<Group> out;
    out.point = *Group::Generator();
    return out;
}

// The group is written as in the paper: * joins two elements, ^ raises one to a number.
template <class Group>
Element<Group> operator*(const Element<Group> &a, const Element<Group> &b) {
    Element<Group> out;
    Group::Add(&out.point, &a.point, &b.point);
    return out;
}

template <class Group>
Element<Group> operator^(const Element<Group> &a, const Scalar &k) {
    blst_scalar plain;
    blst_scalar_from_fr(&plain, &k.value);
    Element<Group> out;
    Group::Multiply(&out.point, &a.point, plain.b);
    return out;
}

template <class Group>
Element<Group> Inverse(Element<Group> a) {
    Group::Negate(&a.point);
    return a;
}

bool SamePairing(const Element<G1> &a, const Element<G2> &b, const Element<G1> &c, const Element<G2> &d) {
    blst_p1_affine left, other;
    blst_p2_affine right, another;
    blst_p1_to_affine(&left, &a.point);
    blst_p2_to_affine(&right, &b.point);
    blst_p1_to_affine(&other, &c.point);
    blst_p2_to_affine(&another, &d.point);
    blst_fp12 one, two;
    blst_miller_loop(&one, &right, &left);
    blst_miller_loop(&two, &another, &other);
    return blst_fp12_finalverify(&one, &two);
}

// -- hashes -----------------------------------------------------------------------------------------------------------

struct Text {
    const char *begin;
    size_t size;
};

Scalar Hashed(const byte *content, size_t size) {
    byte digest[kDigest];
    blst_sha256(digest, content, size);
    return ScalarOf(digest, kDigest);
}

// Numbers out of the seed: SHA-256 over it and a counter, twice, so that all numbers are as likely.
class Chance {
  public:
    explicit Chance(Text seed) : size_(seed.size < sizeof(block_) - 4 ? seed.size : sizeof(block_) - 4), drawn_(0) {
        memcpy(block_, seed.begin, size_);
    }

    Scalar Draw() {
        byte wide[2 * kDigest];
        for (int half = 0; half < 2; half++) {
            drawn_++;
            const byte count[4] = {byte(drawn_ >> 24), byte(drawn_ >> 16), byte(drawn_ >> 8), byte(drawn_)};
            memcpy(block_ + size_, count, 4);
            blst_sha256(wide + half * kDigest, block_, size_ + 4);
        }
        return ScalarOf(wide, sizeof(wide));
    }

  private:
    byte block_[128];
    size_t size_;
    uint32_t drawn_;
};

// -- the protocol -----------------------------------------------------------------------------------------------------

struct SecretKey {
    Element<G1> X;
};

struct PublicKey {
    Element<G1> g, Y[kAttributes];
    Element<G2> g2, X2, Y2[kAttributes];
};

struct Signature {
    Element<G1> s1, s2;
};

struct Proof {
    Signature signature;
    Element<G2> k;
    Scalar challenge, blinding, known[kAttributes];  // of the attribute that is shown: unused
    Scalar shown;
};

void MakeKeys(Chance *chance, SecretKey *secret, PublicKey *key) {
    key->g = Generator<G1>() ^ chance->Draw();
    key->g2 = Generator<G2>() ^ chance->Draw();
    const Scalar x = chance->Draw();
    secret->X = key->g ^ x;
    key->X2 = key->g2 ^ x;
    for (int i = 0; i < kAttributes; i++) {
        const Scalar y = chance->Draw();
        key->Y[i] = key->g ^ y;
        key->Y2[i] = key->g2 ^ y;
    }
}

Element<G1> Commit(const PublicKey &key, const Scalar *attributes, const Scalar &t) {
    Element<G1> out = key.g ^ t;
    for (int i = 0; i < kAttributes; i++) out = out * (key.Y[i] ^ attributes[i]);
    return out;
}

Signature SignBlindly(const SecretKey &secret, const PublicKey &key, const Element<G1> &commitment, const Scalar &u) {
    return Signature{key.g ^ u, (secret.X * commitment) ^ u};
}

Signature Unblind(const Signature &blind, const Scalar &t) {
    return Signature{blind.s1, blind.s2 * Inverse(blind.s1 ^ t)};
}

bool Verify(const PublicKey &key, const Signature &signature, const Scalar *attributes) {
    Element<G2> k = key.X2;
    for (int i = 0; i < kAttributes; i++) k = k * (key.Y2[i] ^ attributes[i]);
    return SamePairing(signature.s1, k, signature.s2, key.g2);
}

// What is hashed for the proof: k, what was committed to, and the signature as it is shown.
struct Transcript {
    byte content[2 * G2::kSize + 2 * G1::kSize];

    Transcript(const Element<G2> &k, const Element<G2> &committed, const Signature &signature) {
        G2::Compress(content, &k.point);
        G2::Compress(content + G2::kSize, &committed.point);
        G1::Compress(content + 2 * G2::kSize, &signature.s1.point);
        G1::Compress(content + 2 * G2::kSize + G1::kSize, &signature.s2.point);
    }

    Scalar Challenge() const { return Hashed(content, sizeof(content)); }
};

Proof Prove(const PublicKey &key, const Signature &signature, const Scalar *attributes, Chance *chance) {
    const Scalar r = chance->Draw(), t = chance->Draw(), random = chance->Draw();
    Proof out;
    out.signature = Signature{signature.s1 ^ r, (signature.s2 * (signature.s1 ^ t)) ^ r};
    out.k = key.X2 * (key.g2 ^ t);
    Element<G2> committed = key.g2 ^ random;
    Scalar randoms[kAttributes];
    for (int i = 0; i < kAttributes; i++) {
        out.k = out.k * (key.Y2[i] ^ attributes[i]);
        if (i == kShown) continue;
        randoms[i] = chance->Draw();
        committed = committed * (key.Y2[i] ^ randoms[i]);
    }
    out.challenge = Transcript(out.k, committed, out.signature).Challenge();
    out.blinding = random - out.challenge * t;
    for (int i = 0; i < kAttributes; i++) {
        if (i != kShown) out.known[i] = randoms[i] - out.challenge * attributes[i];
    }
    out.shown = attributes[kShown];
    return out;
}

// What the prover must have committed to if the answers are right.
Element<G2> Recommitted(const PublicKey &key, const Proof &proof) {
    const Element<G2> hidden = proof.k * Inverse(key.X2 * (key.Y2[kShown] ^ proof.shown));
    Element<G2> out = (hidden ^ proof.challenge) * (key.g2 ^ proof.blinding);
    for (int i = 0; i < kAttributes; i++) {
        if (i != kShown) out = out * (key.Y2[i] ^ proof.known[i]);
    }
    return out;
}

bool VerifyProof(const PublicKey &key, const Proof &proof) {
    const Scalar challenge = Transcript(proof.k, Recommitted(key, proof), proof.signature).Challenge();
    if (memcmp(&challenge, &proof.challenge, sizeof(challenge)) != 0) return false;
    return SamePairing(proof.signature.s1, proof.k, proof.signature.s2, key.g2);
}

// -- words ------------------------------------------------------------------------------------------------------------

// The next text between quotes. What is asked for has neither quotes nor backslashes in it.
bool NextText(const char **at, const char *end, Text *out) {
    const char *open = static_cast<const char *>(memchr(*at, '"', size_t(end - *at)));
    if (open == nullptr) return false;
    const char *close = static_cast<const char *>(memchr(open + 1, '"', size_t(end - open - 1)));
    if (close == nullptr) return false;
    *out = Text{open + 1, size_t(close - open - 1)};
    *at = close + 1;
    return true;
}

bool Is(Text found, const char *wanted) {
    return found.size == strlen(wanted) && memcmp(found.begin, wanted, found.size) == 0;
}

// `[{"seed": "...", "attributes": ["...", ...]}]`, the two in either order.
bool Read(const char *at, const char *end, Text *seed, Text *attributes) {
    Text name;
    bool seeded = false;
    int read = 0;
    while (NextText(&at, end, &name)) {
        if (Is(name, "seed")) {
            seeded = NextText(&at, end, seed);
        } else if (Is(name, "attributes")) {
            while (read < kAttributes && NextText(&at, end, &attributes[read])) read++;
        } else {
            return false;
        }
    }
    return seeded && read == kAttributes;
}

class Writer {
  public:
    Writer() : size_(0) {}
    void Put(const char *text) {
        const size_t size = strlen(text);
        if (size_ + size <= sizeof(text_)) {
            memcpy(text_ + size_, text, size);
            size_ += size;
        }
    }
    void Hex(const byte *content, size_t size) {
        char pair[3];
        Put("\"");
        for (size_t i = 0; i < size; i++) {
            snprintf(pair, sizeof(pair), "%02x", content[i]);
            Put(pair);
        }
        Put("\"");
    }
    template <class Group>
    void Point(const char *name, const Element<Group> &element) {
        byte packed[Group::kSize];
        Group::Compress(packed, &element.point);
        Put(name);
        Hex(packed, Group::kSize);
    }
    const char *text() const { return text_; }
    size_t size() const { return size_; }

  private:
    char text_[4096];
    size_t size_;
};

void Write(Writer *out, const PublicKey &key, const Proof &proof, bool issued, bool verified, bool tampered) {
    out->Put(issued ? "{\"issued\": true" : "{\"issued\": false");
    out->Put(verified ? ", \"verified\": true" : ", \"verified\": false");
    out->Put(tampered ? ", \"tampered\": true" : ", \"tampered\": false");
    out->Point(", \"s1\": ", proof.signature.s1);
    out->Point(", \"s2\": ", proof.signature.s2);
    out->Point(", \"k\": ", proof.k);
    out->Point(", \"g2\": ", key.g2);
    out->Point(", \"committed\": ", Recommitted(key, proof));
    blst_scalar challenge;
    blst_scalar_from_fr(&challenge, &proof.challenge.value);
    byte bytes[kDigest];
    blst_bendian_from_scalar(bytes, &challenge);
    out->Put(", \"challenge\": ");
    out->Hex(bytes, kDigest);
    out->Put("}");
}

int Handle(const unsigned char *in, size_t size, wattloom_reply *reply) {
    const char *begin = reinterpret_cast<const char *>(in);
    Text seed, texts[kAttributes];
    if (!Read(begin, begin + size, &seed, texts)) {
        return wattloom_error(reply, "InputError", "it takes a seed and four attributes");
    }
    Scalar attributes[kAttributes];
    for (int i = 0; i < kAttributes; i++) {
        attributes[i] = Hashed(reinterpret_cast<const byte *>(texts[i].begin), texts[i].size);
    }
    Chance chance(seed);
    SecretKey secret;
    PublicKey key;
    MakeKeys(&chance, &secret, &key);
    const Scalar t = chance.Draw(), u = chance.Draw();
    const Signature signature = Unblind(SignBlindly(secret, key, Commit(key, attributes, t), u), t);
    const bool issued = Verify(key, signature, attributes);
    const Proof proof = Prove(key, signature, attributes, &chance);
    const bool verified = VerifyProof(key, proof);
    Proof wrong = proof;  // another attribute than the one that was signed
    wrong.shown = proof.shown + proof.challenge;
    Proof forged = proof;  // another signature, which the proof is not of
    forged.signature.s2 = forged.signature.s2 * key.g;
    const bool tampered = VerifyProof(key, wrong) || VerifyProof(key, forged) ||
                          SamePairing(forged.signature.s1, forged.k, forged.signature.s2, key.g2);
    Writer out;
    Write(&out, key, proof, issued, verified, tampered);
    return wattloom_json(reply, out.text(), out.size());
}

}  // namespace

int main(int argc, char **argv) { return wattloom_serve(argc, argv, Handle); }
