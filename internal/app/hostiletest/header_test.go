package hostiletest

import (
	"strings"
)

// headerRows are headers that break rules or say what a service has no business to say. What every other row forges, see forged.
func headerRows() []row {
	with := func(name, header string, w want) row {
		return row{name: name, plan: working(says("HTTP/1.1 200 OK\r\n{forged}" + header + "Content-Length: 13\r\n\r\n" + done)), want: w}
	}
	many := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString("X-Evil: e\r\n")
		}
		return b.String()
	}
	return []row{
		with("it forges receipts, terms, outcomes, cookies, caching and cross-origin rules", typeJSON+"\r\n", serves(done)),
		with("it sends two types", typeJSON+"\r\nContent-Type: text/evil\r\n", serves(done)),
		with("it hides a cookie behind a carriage return in its type", "Content-Type: text/plain\rSet-Cookie: evil=1\r\n", badResponse),
		with("it hides a cookie behind a line feed in its type", "Content-Type: text/plain\nSet-Cookie: evil=1\r\n", serves(done)),
		with("it folds a line", typeJSON+"\r\nX-Evil: a\r\n b: evil\r\n", serves(done)),
		with("it folds its first header", "", serves(done)),
		with("it hides a NUL in its type", "Content-Type: text/plain\x00evil\r\n", badResponse),
		with("it writes its type with control bytes", "Content-Type: text/\x1b[31mplain\r\n", badResponse),
		with("it writes its type in another script", "Content-Type: text/пример\r\n", serves(done)),
		with("it writes a type of 2 KB", "Content-Type: text/"+strings.Repeat("evil", 512)+"\r\n", serves(done)),
		with("it names a file with a path", typeJSON+"\r\nContent-Disposition: attachment; filename=\"../../x.json\"\r\n", serves(done)),
		with("it sends a header without a name", ": evil\r\n", badResponse),
		with("it sends a header without a colon", "evil\r\n", badResponse),
		with("it sends a space before the colon", "Set-Cookie : evil=1\r\n", serves(done)),
		with("it spells reserved names with underscores (B102)", "market_call: evil\r\nPAYMENT_RESPONSE: evil\r\nset_cookie: evil\r\n"+typeJSON+"\r\n", serves(done)),
		with("it names its own headers in Connection (B96)", "Connection: Content-Type, Market-Call, Cache-Control\r\n"+typeJSON+"\r\n", serves(done)),
		with("it sends 60 KB of headers", many(5000), serves(done)),
		with("it sends 10 000 headers", many(10_000), badResponse),
		with("it sends one header of 70 KB", "X-Evil: "+strings.Repeat("e", 70<<10)+"\r\n", badResponse),
		with("it sends one header of 10 MB", "X-Evil: "+strings.Repeat("e", 10<<20)+"\r\n", badResponse),
		{name: "it sends headers without end", plan: working(func(t *talk) { t.eat(); t.say("HTTP/1.1 200 OK\r\n"); t.pour(many(1000)) }), want: badResponse},
		{name: "it sends a header name without end", plan: working(func(t *talk) { t.eat(); t.say("HTTP/1.1 200 OK\r\n"); t.pour(strings.Repeat("e", 1<<15)) }), want: badResponse},
		with("it offers HTTP/3 elsewhere", "Alt-Svc: h3=\"evil.test:443\"; ma=31536000; persist=1\r\n"+typeJSON+"\r\n", serves(done)),
		with("it says that its bytes are packed and they are not (B95)", typeJSON+"\r\nContent-Encoding: gzip\r\n", serves(done)),
		with("it says that its bytes are packed twice, in ways that nobody asked for", typeJSON+"\r\nContent-Encoding: br, zstd\r\n", serves(done)),
	}
}
