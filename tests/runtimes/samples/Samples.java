// What `wattloom.testing.runtime_conformance` asks for, and a few more.
package org.example;

import java.util.List;
import java.util.Map;

public class Samples {
    private static int calls = 0;
    private int own = 0;

    public record Point(int x, double y, List<String> names) {}

    public static Object echo(Object value) {
        return value;
    }

    public static double add(double a, double b) {
        return a + b;
    }

    public static void fail(String text) {
        throw new IllegalStateException(text);
    }

    public static void say(String text, int times) {
        for (int i = 0; i < times; i++) System.out.println(text);
    }

    public static String grow(int n) {
        return "x".repeat(n);
    }

    public static void spin(double seconds) {
        var bean = java.lang.management.ManagementFactory.getThreadMXBean();
        long end = bean.getCurrentThreadCpuTime() + (long) (seconds * 1e9);
        double x = 0;
        while (bean.getCurrentThreadCpuTime() < end) for (int i = 0; i < 100_000; i++) x += i;
        if (x < 0) System.out.println(x);
    }

    public static Object nan() {
        return Map.of("figure", Double.NaN);
    }

    public static int count() {
        return calls++;
    }

    public static void end(int code) {
        System.exit(code);
    }

    public static void die() throws Exception {
        new ProcessBuilder("kill", "-9", String.valueOf(ProcessHandle.current().pid())).start().waitFor();
        Thread.sleep(10_000);
    }

    public static Point point(int x) {
        return new Point(x, x / 2.0, List.of("a", "ü"));
    }

    public static double total(double[][] rows) {
        double sum = 0;
        for (double[] row : rows) for (double each : row) sum += each;
        return sum;
    }

    public static int length(String... words) {
        return words.length;
    }

    public int counted() {
        return ++own;
    }

    public static long pid() {
        return ProcessHandle.current().pid();
    }

    public static void loop() {
        while (true) Thread.onSpinWait();
    }

    public static Object odd() {
        return new Thread();
    }
}
