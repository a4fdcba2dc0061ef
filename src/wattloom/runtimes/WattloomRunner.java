// The other end of runtimes/child.py in Java: loads classes and calls their methods, one call at a time.
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.RecordComponent;
import java.math.BigInteger;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.jar.JarFile;

public final class WattloomRunner {
    private static final int LOAD = 1, CALL_BYTES = 3;
    private static final int READY = 16, VALUE_JSON = 17, VALUE_BYTES = 18, RAISED = 19, UNSENDABLE = 20, RAISED_LAST = 21;
    private static final int HEAD = 13;

    private final DataInputStream requests;
    private final OutputStream replies;
    private final Map<Integer, Function> functions = new HashMap<>();

    private WattloomRunner(DataInputStream requests, OutputStream replies) {
        this.requests = requests;
        this.replies = replies;
    }

    public static void main(String[] args) throws Exception {
        String from = System.getenv("WATTLOOM_REQUESTS"), to = System.getenv("WATTLOOM_REPLIES");
        try (FileInputStream in = new FileInputStream("/proc/self/fd/" + from);
                FileOutputStream out = new FileOutputStream("/proc/self/fd/" + to)) {
            new WattloomRunner(new DataInputStream(in), out).serve();
        }
        System.exit(0);
    }

    // -- frames

    private void serve() throws IOException {
        byte[] head = new byte[HEAD];
        while (readFully(head)) {
            ByteBuffer buffer = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
            int kind = buffer.get(), number = buffer.getInt();
            long length = buffer.getLong();
            if (length > Integer.MAX_VALUE - 16) {
                for (long left = length; left > 0; ) left -= requests.skip(left);
                answer(RAISED, number, told(new IllegalArgumentException("the arguments are too large for Java: " + length + " bytes")));
                continue;
            }
            byte[] body = new byte[(int) length];
            requests.readFully(body);
            try {
                if (kind == LOAD) {
                    functions.put(number, Function.load(asMap(Json.parse(text(body)))));
                    answer(READY, number, new byte[0]);
                } else {
                    call(number, kind, body);
                }
            } catch (OutOfMemoryError problem) {
                answer(RAISED_LAST, number, told(problem));
                System.exit(1);
            } catch (Throwable problem) {
                answer(RAISED, number, told(problem));
            }
        }
    }

    private boolean readFully(byte[] head) throws IOException {
        int at = 0;
        while (at < head.length) {
            int got = requests.read(head, at, head.length - at);
            if (got < 0) return false; // the worker has gone
            at += got;
        }
        return true;
    }

    private void call(int number, int kind, byte[] body) throws Throwable {
        Function function = functions.get(number);
        Object value = kind == CALL_BYTES ? function.call(List.of((Object) body)) : function.call(asList(Json.parse(text(body))));
        if (value instanceof byte[] bytes) {
            answer(VALUE_BYTES, number, bytes);
            return;
        }
        byte[] json;
        try {
            json = Json.write(value).getBytes(StandardCharsets.UTF_8);
        } catch (IllegalArgumentException problem) {
            answer(UNSENDABLE, number, problem.getMessage().getBytes(StandardCharsets.UTF_8));
            return;
        }
        answer(VALUE_JSON, number, json);
    }

    private void answer(int kind, int number, byte[] body) throws IOException {
        System.out.flush();
        System.err.flush();
        ByteBuffer head = ByteBuffer.allocate(HEAD).order(ByteOrder.LITTLE_ENDIAN);
        head.put((byte) kind).putInt(number).putLong(body.length);
        if (body.length < 65536) {
            ByteArrayOutputStream whole = new ByteArrayOutputStream(HEAD + body.length);
            whole.write(head.array());
            whole.write(body);
            replies.write(whole.toByteArray());
        } else {
            replies.write(head.array());
            replies.write(body);
        }
    }

    private static byte[] told(Throwable problem) {
        Throwable cause = problem;
        StringWriter text = new StringWriter();
        cause.printStackTrace(new PrintWriter(text));
        StringBuilder trace = new StringBuilder();
        for (String line : text.toString().split("\n")) {
            boolean ours = line.contains("WattloomRunner") || line.contains("jdk.internal.reflect") || line.contains("java.lang.reflect.Method.invoke");
            if (!ours) trace.append(line).append('\n');
        }
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("type", cause.getClass().getName());
        told.put("message", cause.getMessage() == null ? "" : cause.getMessage());
        told.put("traceback", trace.toString());
        return Json.write(told).getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] body) {
        return new String(body, StandardCharsets.UTF_8);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> asMap(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    private static List<Object> asList(Object value) {
        return (List<Object>) value;
    }

    /** Somebody has named what is not there. */
    static final class NoSuchFunction extends Exception {
        NoSuchFunction(String message) {
            super(message, null, false, false);
        }
    }

    // -- functions

    /** One method of one class. */
    static final class Function {
        private final Class<?> type;
        private final String name;
        private final List<Method> methods = new ArrayList<>();
        private Object instance;

        private Function(Class<?> type, String name) throws Exception {
            this.type = type;
            this.name = name;
            for (Method each : type.getMethods()) {
                if (each.getName().equals(name) && !each.isBridge() && each.getDeclaringClass() != Object.class) {
                    each.setAccessible(true);
                    methods.add(each);
                }
            }
            if (methods.isEmpty()) throw new NoSuchFunction(type.getName() + " has no public method " + name + "; it has " + publicMethods(type));
        }

        static Function load(Map<String, Object> told) throws Throwable {
            List<URL> places = new ArrayList<>();
            for (Object place : asList(told.get("classpath"))) places.add(new File((String) place).toURI().toURL());
            ClassLoader loader = new URLClassLoader(places.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
            Thread.currentThread().setContextClassLoader(loader);
            String path = (String) told.get("path"), entry = (String) told.get("entry"), type = (String) told.get("class");
            if (type.isEmpty() && entry.isEmpty()) type = mainClass(path);
            if (type.isEmpty()) return inJar(loader, path, entry);
            if (entry.isEmpty()) return new Function(loader.loadClass(type), "handler");
            if (entry.indexOf('.') < 0) return new Function(loader.loadClass(type), entry);
            return inJar(loader, path, entry);
        }

        private static Function inJar(ClassLoader loader, String path, String entry) throws Exception {
            int dot = entry.lastIndexOf('.');
            try {
                return new Function(loader.loadClass(entry), "handler");
            } catch (ClassNotFoundException problem) {
                if (dot < 0) throw new NoSuchFunction(new File(path).getName() + " has no class " + entry);
            }
            try {
                return new Function(loader.loadClass(entry.substring(0, dot)), entry.substring(dot + 1));
            } catch (ClassNotFoundException problem) {
                throw new NoSuchFunction(new File(path).getName() + " has neither a class " + entry + " nor a class " + entry.substring(0, dot));
            }
        }

        private static String mainClass(String path) throws Exception {
            try (JarFile jar = new JarFile(path)) {
                String found = jar.getManifest() == null ? null : jar.getManifest().getMainAttributes().getValue("Main-Class");
                if (found != null) return found.trim();
            }
            throw new NoSuchFunction(new File(path).getName() + " does not say which class: name it, as in app.jar:org.example.Main.handler");
        }

        private static String publicMethods(Class<?> type) {
            Set<String> names = new LinkedHashSet<>();
            for (Method each : type.getMethods()) if (each.getDeclaringClass() != Object.class) names.add(each.getName());
            return names.isEmpty() ? "none" : String.join(", ", names);
        }

        Object call(List<Object> args) throws Throwable {
            Thread.currentThread().setContextClassLoader(type.getClassLoader());
            Method method = chosen(args.size());
            Object[] given = Convert.arguments(method, args);
            try {
                return method.invoke(Modifier.isStatic(method.getModifiers()) ? null : instance(), given);
            } catch (InvocationTargetException problem) {
                throw problem.getCause();
            }
        }

        private Method chosen(int count) {
            for (Method each : methods) if (each.getParameterCount() == count && !each.isVarArgs()) return each;
            for (Method each : methods) if (each.isVarArgs() && count >= each.getParameterCount() - 1) return each;
            if (methods.size() == 1) {
                throw new IllegalArgumentException(name + " takes " + methods.get(0).getParameterCount() + " arguments, not " + count);
            }
            throw new IllegalArgumentException("no " + name + " takes " + count + " arguments");
        }

        private Object instance() throws Throwable {
            if (instance == null) {
                try {
                    instance = type.getConstructor().newInstance();
                } catch (InvocationTargetException problem) {
                    throw problem.getCause();
                } catch (NoSuchMethodException problem) {
                    throw new NoSuchFunction(type.getName() + "." + name + " is not static, and its class has no public constructor without arguments");
                }
            }
            return instance;
        }
    }

    // -- from JSON to what a method takes

    static final class Convert {
        static Object[] arguments(Method method, List<Object> args) {
            Class<?>[] types = method.getParameterTypes();
            Object[] given = new Object[types.length];
            int plain = method.isVarArgs() ? types.length - 1 : types.length;
            for (int i = 0; i < plain; i++) given[i] = to(types[i], args.get(i), "argument " + (i + 1));
            if (method.isVarArgs()) given[plain] = to(types[plain], args.subList(plain, args.size()), "arguments");
            return given;
        }

        static Object to(Class<?> type, Object value, String where) {
            if (value == null) {
                if (type.isPrimitive()) throw new IllegalArgumentException(where + " is null, and " + type + " is wanted");
                return null;
            }
            if (type == Object.class || (type.isInstance(value) && !type.isArray())) return value;
            if (type.isInstance(value)) return value;
            if (type.isArray() && value instanceof List<?> list) {
                Object array = Array.newInstance(type.getComponentType(), list.size());
                for (int i = 0; i < list.size(); i++) Array.set(array, i, to(type.getComponentType(), list.get(i), where + "[" + i + "]"));
                return array;
            }
            if (value instanceof Number number) {
                Object found = number(type, number);
                if (found != null) return found;
            }
            if (value instanceof Boolean && (type == boolean.class)) return value;
            if (value instanceof String string && (type == char.class || type == Character.class) && string.length() == 1) return string.charAt(0);
            throw new IllegalArgumentException(where + " is " + value.getClass().getSimpleName() + ", and " + type.getSimpleName() + " is wanted");
        }

        private static Object number(Class<?> type, Number number) {
            if (type == double.class || type == Double.class) return number.doubleValue();
            if (type == float.class || type == Float.class) return number.floatValue();
            if (number instanceof Double d && d != Math.rint(d)) return null;
            long whole = number.longValue();
            if (number instanceof BigInteger big) return type == BigInteger.class ? big : null;
            if (type == long.class || type == Long.class) return whole;
            if (type == BigInteger.class) return BigInteger.valueOf(whole);
            if ((type == int.class || type == Integer.class) && whole == (int) whole) return (int) whole;
            if ((type == short.class || type == Short.class) && whole == (short) whole) return (short) whole;
            if ((type == byte.class || type == Byte.class) && whole == (byte) whole) return (byte) whole;
            return null;
        }
    }

    // -- JSON

    static final class Json {
        private static final int DEEPEST = 1000;
        private final String text;
        private int at;

        private Json(String text) {
            this.text = text;
        }

        static Object parse(String text) {
            Json json = new Json(text);
            Object found = json.value(0);
            json.blank();
            if (json.at < text.length()) throw json.wrong();
            return found;
        }

        private IllegalArgumentException wrong() {
            return new IllegalArgumentException("no JSON at letter " + at);
        }

        private void blank() {
            while (at < text.length() && text.charAt(at) <= ' ') at++;
        }

        private Object value(int depth) {
            if (depth > DEEPEST) throw new IllegalArgumentException("the arguments are nested too deep");
            blank();
            if (at >= text.length()) throw wrong();
            switch (text.charAt(at)) {
                case '{': return object(depth);
                case '[': return list(depth);
                case '"': return string();
                case 't': return word("true", Boolean.TRUE);
                case 'f': return word("false", Boolean.FALSE);
                case 'n': return word("null", null);
                default: return number();
            }
        }

        private Object word(String word, Object value) {
            if (!text.startsWith(word, at)) throw wrong();
            at += word.length();
            return value;
        }

        private boolean more(char end) {
            blank();
            if (at >= text.length()) throw wrong();
            char c = text.charAt(at++);
            if (c == end) return false;
            if (c != ',') throw wrong();
            return true;
        }

        private Map<String, Object> object(int depth) {
            Map<String, Object> found = new LinkedHashMap<>();
            at++;
            blank();
            if (at < text.length() && text.charAt(at) == '}') {
                at++;
                return found;
            }
            do {
                blank();
                String key = string();
                blank();
                if (at >= text.length() || text.charAt(at++) != ':') throw wrong();
                found.put(key, value(depth + 1));
            } while (more('}'));
            return found;
        }

        private List<Object> list(int depth) {
            List<Object> found = new ArrayList<>();
            at++;
            blank();
            if (at < text.length() && text.charAt(at) == ']') {
                at++;
                return found;
            }
            do {
                found.add(value(depth + 1));
            } while (more(']'));
            return found;
        }

        private String string() {
            if (at >= text.length() || text.charAt(at) != '"') throw wrong();
            int from = ++at;
            while (at < text.length() && text.charAt(at) != '"' && text.charAt(at) != '\\') at++;
            if (at < text.length() && text.charAt(at) == '"') return text.substring(from, at++);
            StringBuilder found = new StringBuilder(text.substring(from, at));
            while (at < text.length()) {
                char c = text.charAt(at++);
                if (c == '"') return found.toString();
                found.append(c == '\\' ? escaped() : c);
            }
            throw wrong();
        }

        private char escaped() {
            char c = text.charAt(at++);
            switch (c) {
                case 'n': return '\n';
                case 't': return '\t';
                case 'r': return '\r';
                case 'b': return '\b';
                case 'f': return '\f';
                case 'u':
                    at += 4;
                    return (char) Integer.parseInt(text.substring(at - 4, at), 16);
                default: return c;
            }
        }

        private Number number() {
            int from = at;
            boolean whole = true;
            while (at < text.length() && "+-0123456789.eE".indexOf(text.charAt(at)) >= 0) {
                char c = text.charAt(at++);
                whole &= c != '.' && c != 'e' && c != 'E';
            }
            if (at == from) throw wrong();
            String found = text.substring(from, at);
            if (!whole) return Double.valueOf(found);
            if (found.length() < 19) return Long.valueOf(found);
            BigInteger big = new BigInteger(found);
            return big.bitLength() < 64 ? (Number) big.longValue() : big;
        }

        static String write(Object value) {
            StringBuilder out = new StringBuilder();
            write(value, out, 0);
            return out.toString();
        }

        private static void write(Object value, StringBuilder out, int depth) {
            if (depth > DEEPEST) throw new IllegalArgumentException("it is nested too deep, or holds itself");
            if (value == null || value instanceof Boolean) out.append(value);
            else if (value instanceof Number number) writeNumber(number, out);
            else if (value instanceof CharSequence || value instanceof Character || value instanceof Enum<?>) quote(value.toString(), out);
            else if (value instanceof Optional<?> optional) write(optional.orElse(null), out, depth + 1);
            else if (value instanceof Map<?, ?> map) writeMap(map, out, depth);
            else if (value instanceof Iterable<?> list) writeAll(list, out, depth);
            else if (value.getClass().isArray()) writeArray(value, out, depth);
            else if (value instanceof Record record) writeMap(components(record), out, depth);
            else throw new IllegalArgumentException("it is or has " + value.getClass().getName());
        }

        private static void writeNumber(Number number, StringBuilder out) {
            if ((number instanceof Double || number instanceof Float) && !Double.isFinite(number.doubleValue())) {
                throw new IllegalArgumentException("it has " + number + ", which JSON has no word for");
            }
            out.append(number);
        }

        private static void writeMap(Map<?, ?> map, StringBuilder out, int depth) {
            char before = '{';
            for (Map.Entry<?, ?> each : map.entrySet()) {
                out.append(before);
                quote(String.valueOf(each.getKey()), out);
                out.append(':');
                write(each.getValue(), out, depth + 1);
                before = ',';
            }
            out.append(map.isEmpty() ? "{}" : "}");
        }

        private static void writeAll(Iterable<?> list, StringBuilder out, int depth) {
            boolean first = true;
            out.append('[');
            for (Object each : list) {
                if (!first) out.append(',');
                write(each, out, depth + 1);
                first = false;
            }
            out.append(']');
        }

        private static void writeArray(Object array, StringBuilder out, int depth) {
            out.append('[');
            for (int i = 0, n = Array.getLength(array); i < n; i++) {
                if (i > 0) out.append(',');
                write(Array.get(array, i), out, depth + 1);
            }
            out.append(']');
        }

        private static Map<String, Object> components(Record record) {
            Map<String, Object> found = new LinkedHashMap<>();
            try {
                for (RecordComponent each : record.getClass().getRecordComponents()) {
                    Method accessor = each.getAccessor();
                    accessor.setAccessible(true);
                    found.put(each.getName(), accessor.invoke(record));
                }
            } catch (ReflectiveOperationException problem) {
                throw new IllegalArgumentException("a record cannot be read: " + problem);
            }
            return found;
        }

        private static void quote(String value, StringBuilder out) {
            out.append('"');
            for (int i = 0; i < value.length(); i++) {
                char c = value.charAt(i);
                if (c == '"' || c == '\\') out.append('\\').append(c);
                else if (c < ' ' || Character.isSurrogate(c) && !paired(value, i)) out.append(String.format("\\u%04x", (int) c));
                else out.append(c);
            }
            out.append('"');
        }

        private static boolean paired(String value, int i) {
            char c = value.charAt(i);
            if (Character.isHighSurrogate(c)) return i + 1 < value.length() && Character.isLowSurrogate(value.charAt(i + 1));
            return i > 0 && Character.isHighSurrogate(value.charAt(i - 1));
        }
    }
}
