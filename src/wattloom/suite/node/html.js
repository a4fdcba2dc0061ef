// html-node: a page out of a template, by Mustache.
"use strict";

const Mustache = require("mustache");

const PAGE = `<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>{{title}}</title></head>
<body><p>Hello, {{user}}.</p>
<table>
{{#articles}}
<tr><td>{{name}}</td><td>{{price}}</td><td>{{#tags}}{{.}} {{/tags}}</td></tr>
{{/articles}}
</table></body></html>
`;
Mustache.parse(PAGE);

exports.handler = (event) => ({ html: Mustache.render(PAGE, event) });
