// thumbnail-java: a picture made small, by java.awt. It halves the picture as long as it can: one step of bilinear or
// bicubic interpolation over more than that would leave pixels out.

import java.awt.Graphics2D;
import java.awt.RenderingHints;
import java.awt.image.BufferedImage;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Base64;
import java.util.Map;
import javax.imageio.ImageIO;

public class Thumbnail {
    static {
        System.setProperty("java.awt.headless", "true");
        ImageIO.setUseCache(false);
    }

    public static Object handler(Map<String, Object> event) throws IOException {
        int width = ((Number) event.get("width")).intValue();
        int height = ((Number) event.get("height")).intValue();
        byte[] packed = Base64.getDecoder().decode((String) event.get("image"));
        BufferedImage image = ImageIO.read(new ByteArrayInputStream(packed));
        while (image.getWidth() > 2 * width && image.getHeight() > 2 * height) {
            image = scaled(image, image.getWidth() / 2, image.getHeight() / 2);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ImageIO.write(scaled(image, width, height), "png", out);
        String text = Base64.getEncoder().encodeToString(out.toByteArray());
        return Map.of("image", text, "width", width, "height", height);
    }

    private static BufferedImage scaled(BufferedImage image, int width, int height) {
        BufferedImage small = new BufferedImage(width, height, BufferedImage.TYPE_INT_RGB);
        Graphics2D canvas = small.createGraphics();
        canvas.setRenderingHint(RenderingHints.KEY_INTERPOLATION, RenderingHints.VALUE_INTERPOLATION_BILINEAR);
        canvas.drawImage(image, 0, 0, width, height, null);
        canvas.dispose();
        return small;
    }
}
