// matrix-native-java: the product of two matrices, in plain Java.

import java.util.List;
import java.util.Map;

public class MatrixNative {
    public static Object handler(Map<String, Object> event) {
        double[][] a = matrix(event.get("a"));
        double[][] b = matrix(event.get("b"));
        double[][] product = new double[a.length][b[0].length];
        for (int i = 0; i < a.length; i++) {
            for (int k = 0; k < b.length; k++) {
                for (int j = 0; j < product[i].length; j++) {
                    product[i][j] += a[i][k] * b[k][j];
                }
            }
        }
        return Map.of("product", product);
    }

    private static double[][] matrix(Object rows) {
        return ((List<?>) rows).stream().map(MatrixNative::row).toArray(double[][]::new);
    }

    private static double[] row(Object numbers) {
        return ((List<?>) numbers).stream().mapToDouble(each -> ((Number) each).doubleValue()).toArray();
    }
}
