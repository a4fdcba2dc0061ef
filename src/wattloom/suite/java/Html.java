// html-java: a page out of a template, by FreeMarker.

import freemarker.core.HTMLOutputFormat;
import freemarker.template.Configuration;
import freemarker.template.Template;
import freemarker.template.TemplateException;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.util.Map;

public class Html {
    private static final String PAGE = """
            <!DOCTYPE html>
            <html><head><meta charset="utf-8"><title>${title}</title></head>
            <body><p>Hello, ${user}.</p>
            <table>
            <#list articles as article>
            <tr><td>${article.name}</td><td>${article.price}</td><td><#list article.tags as tag>${tag} </#list></td></tr>
            </#list>
            </table></body></html>
            """;
    private static final Template TEMPLATE = template();

    private static Template template() {
        Configuration settings = new Configuration(Configuration.VERSION_2_3_31);
        settings.setOutputFormat(HTMLOutputFormat.INSTANCE);
        try {
            return new Template("page", new StringReader(PAGE), settings);
        } catch (IOException problem) {
            throw new IllegalStateException(problem);
        }
    }

    public static Object handler(Map<String, Object> event) throws IOException, TemplateException {
        StringWriter page = new StringWriter();
        TEMPLATE.process(event, page);
        return Map.of("html", page.toString());
    }
}
