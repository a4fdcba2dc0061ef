// jwt-java: a token is signed and verified, and one that was changed is not, by jjwt.

import io.jsonwebtoken.Jwts;
import io.jsonwebtoken.security.SignatureException;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.Map;

public class Jwt {
    private static final String NO_KEY = "";
    private static String pem = NO_KEY;
    private static PrivateKey privateKey;
    private static PublicKey publicKey;

    public static Object handler(Map<String, Object> event) throws GeneralSecurityException {
        readKeys((String) event.get("key"), (String) event.get("public_key"));
        @SuppressWarnings("unchecked")
        Map<String, Object> claims = (Map<String, Object>) event.get("claims");
        String token = Jwts.builder().claims(claims).signWith(privateKey, Jwts.SIG.RS256).compact();
        Map<String, Object> found = verified(token);
        boolean same = found != null && claims.get("nonce").equals(found.get("nonce"));
        return Map.of("token", token, "verified", same, "tampered", verified(changed(token)) != null);
    }

    // Once, as a service would.
    private static void readKeys(String mine, String theirs) throws GeneralSecurityException {
        if (mine.equals(pem)) {
            return;
        }
        KeyFactory rsa = KeyFactory.getInstance("RSA");
        privateKey = rsa.generatePrivate(new PKCS8EncodedKeySpec(bytes(mine)));
        publicKey = rsa.generatePublic(new X509EncodedKeySpec(bytes(theirs)));
        pem = mine;
    }

    private static byte[] bytes(String text) {
        return Base64.getMimeDecoder().decode(text.replaceAll("-----[A-Z ]+-----", ""));
    }

    private static Map<String, Object> verified(String token) {
        try {
            return Jwts.parser().verifyWith(publicKey).build().parseSignedClaims(token).getPayload();
        } catch (SignatureException problem) {
            return null;
        }
    }

    // With another first letter of the signature.
    private static String changed(String token) {
        int at = token.lastIndexOf('.') + 1;
        return token.substring(0, at) + (token.charAt(at) == 'A' ? 'B' : 'A') + token.substring(at + 1);
    }
}
