// zip-java: three files as one zip archive, by java.util.zip.

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

public class Zip {
    public static Object handler(Map<String, Object> event) throws IOException {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (ZipOutputStream archive = new ZipOutputStream(packed)) {
            archive.setLevel(6);
            for (Object each : (List<?>) event.get("files")) {
                Map<?, ?> file = (Map<?, ?>) each;
                archive.putNextEntry(new ZipEntry((String) file.get("name")));
                archive.write(((String) file.get("text")).getBytes(StandardCharsets.UTF_8));
                archive.closeEntry();
            }
        }
        return Map.of("archive", Base64.getEncoder().encodeToString(packed.toByteArray()));
    }
}
