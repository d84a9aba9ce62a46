package hostiletest

import (
	"fmt"
	"strings"
	"time"

	"market/internal/app/apptest"
)

const megabyte = 1 << 20

func bodyRows() []row {
	checked := func(name, body string, w want, headers ...string) row {
		return row{name: name + " where the listing promises JSON", plan: working(answers("200 OK", body, append([]string{typeJSON}, headers...)...)), listing: promising(promised), want: w}
	}
	full := strings.Repeat("x", megabyte)
	return append([]row{
		{name: "it sends as much as the listing allows", plan: working(answers("200 OK", full)), want: serves(full)},
		{name: "it sends one byte more than the listing allows", plan: working(answers("200 OK", full+"x")), want: tooLarge},
		{name: "it sends one byte more in chunks", plan: working(chunked(fmt.Sprintf("%x\r\n%s\r\n1\r\nx\r\n0\r\n\r\n", megabyte, full))), want: tooLarge},
		{name: "it sends 5 GB in chunks", plan: working(func(t *talk) {
			chunked("")(t)
			chunk := fmt.Sprintf("%x\r\n%s\r\n", 1<<16, strings.Repeat("x", 1<<16))
			for range 5 << 30 / (1 << 16) {
				if _, err := t.Write([]byte(chunk)); err != nil {
					return
				}
			}
			t.say("0\r\n\r\n")
		}), want: tooLarge},
		{name: "it sends without end and without a length", plan: working(func(t *talk) { says("HTTP/1.1 200 OK\r\n{forged}\r\n")(t); t.pour(strings.Repeat("x", 1<<16)) }), want: tooLarge},
		{name: "it sends a byte now and then", plan: working(func(t *talk) {
			says("HTTP/1.1 200 OK\r\n{forged}Content-Length: 1000\r\n\r\n")(t)
			t.drip(strings.Repeat("x", 1000), 40*time.Millisecond)
		}), listing: soon(), want: timeout},
		{name: "it sends a byte of its headers now and then", plan: working(func(t *talk) { t.eat(); t.drip(answer("200 OK", done), 40*time.Millisecond) }), listing: soon(), want: timeout},
		{name: "it stops in the middle and keeps the connection (B93)", plan: working(func(t *talk) {
			says("HTTP/1.1 200 OK\r\n{forged}Content-Length: 1000\r\n\r\n" + done)(t)
			t.wait()
		}), listing: soon(), want: timeout},
		{name: "it streams events where no stream is listed (B105)", plan: working(func(t *talk) {
			says("HTTP/1.1 200 OK\r\n{forged}Content-Type: text/event-stream\r\n\r\n")(t)
			t.drip(strings.Repeat("data: evil\n\n", 100), 30*time.Millisecond)
		}), want: badResponse},
		{name: "it packs its answer although nobody reads it here (B95)", plan: working(answers("200 OK", apptest.Gzip(done), typeJSON, "Content-Encoding: gzip")), want: serves(apptest.Gzip(done))},
		{name: "it packs 900 MB into its answer", plan: working(func(t *talk) { answers("200 OK", bomb(), typeJSON, "Content-Encoding: gzip")(t) }), want: serves(bomb())},
		{name: "it packs 900 MB where the listing promises JSON", plan: working(func(t *talk) { answers("200 OK", bomb(), typeJSON, "Content-Encoding: gzip")(t) }),
			listing: promising(promised), want: tooLarge},
		{name: "it says that it is an image", plan: working(answers("200 OK", done, "Content-Type: image/png")), want: serves(done)},
		{name: "it sends a page with a script", plan: working(answers("200 OK", "<script>parent.evil()</script>", "Content-Type: text/html")), want: serves("<script>parent.evil()</script>")},
		{name: "it sends a page without a type", plan: working(answers("200 OK", "<script>parent.evil()</script>")), want: serves("<script>parent.evil()</script>")},
		{name: "it sends nothing", plan: working(answers("200 OK", "")), want: serves("")},
		{name: "it echoes what it was sent", plan: working(func(t *talk) {
			var b strings.Builder
			_ = t.asking.Header.Write(&b)
			if t.asking.Header.Get("Payment-Signature") != "" || strings.Contains(b.String(), "evil") {
				b.WriteString("PAYMENT LEAKED")
			}
			t.eat()
			leaked := strings.Contains(strings.ToLower(b.String()), "payment") || t.asking.Header.Get("Cookie") != ""
			t.say(answer("200 OK", fmt.Sprintf(`{"leaked":%v}`, leaked), typeJSON))
		}), want: serves(`{"leaked":false}`)},

		checked("it keeps its promise", done, serves(done)),
		checked("it packs its answer", apptest.Gzip(done), serves(apptest.Gzip(done)), "Content-Encoding: gzip"),
		checked("it packs its answer twice", apptest.Gzip(apptest.Gzip(done)), badResponse, "Content-Encoding: gzip"),
		checked("it says that it packed and did not", done, badResponse, "Content-Encoding: gzip"),
		checked("it packs and cuts the packet", apptest.Gzip(done)[:20], badResponse, "Content-Encoding: gzip"),
		checked("it packs with a wrong checksum", apptest.Gzip(done)[:len(apptest.Gzip(done))-8]+"\x00\x00\x00\x00\x0d\x00\x00\x00", badResponse, "Content-Encoding: gzip"),
		checked("it packs in a way that nobody asked for", done, badResponse, "Content-Encoding: br"),
		checked("it sends HTML", "<html>evil</html>", badResponse),
		checked("it sends nothing", "", badResponse),
		checked("it sends half an object", `{"done":`, badResponse),
		checked("it sends two objects", done+done, badResponse),
		checked("it sends an object that is another", `{"evil":1}`, badResponse),
		checked("it sends a list", `[true]`, badResponse),
		checked("it sends brackets, 100 000 deep", strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000), badResponse),
		checked("it sends members, 100 000 deep", strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000), badResponse),
		checked("it sends a member twice", `{"done":"evil","done":true}`, badResponse),
		checked("it sends a number of a billion digits in few bytes", `{"done":true,"n":1e999999999}`, badResponse),
		checked("it sends no number", `{"done":NaN}`, badResponse),
		checked("it sends bytes that are no text", "{\"done\":true,\"x\":\"\xff\xfe\"}", badResponse),
		checked("it begins with a byte order mark", "\ufeff"+done, badResponse),
		checked("it sends half a surrogate", `{"done":true,"x":"\ud800"}`, serves(`{"done":true,"x":"\ud800"}`)),
		checked("it sends 200 000 members", manyMembers(), serves(manyMembers())),
	}, refusalRows()...)
}

func manyMembers() string {
	var b strings.Builder
	b.WriteString(`{"done":true`)
	for i := range 60_000 {
		fmt.Fprintf(&b, `,"m%d":%d`, i, i%10)
	}
	return b.String() + "}"
}

// refusalRows are what a service says with a 4xx. It stands in our own document as service_answer, where it may not do harm.
func refusalRows() []row {
	refuses := func(name, body, told string, headers ...string) row {
		return row{name: "it turns the request down " + name, plan: working(answers("400 Bad Request", body, headers...)), want: turnsDown(400).telling(told)}
	}
	long := strings.Repeat("e", 4096)
	return []row{
		refuses("in JSON", `{"why":["no"]}`, `{"why":["no"]}`, typeJSON),
		refuses("in a page with a script", "<script>x()</script>", `"\u003cscript\u003ex()\u003c/script\u003e"`, "Content-Type: text/html"),
		refuses("in a megabyte", strings.Repeat("e", megabyte), `"`+long+`"`),
		refuses("in bytes that are no text", "\xff\xfe\x00evil", `null`),
		refuses("in control characters", "a\x1b[2Jb", `null`),
		refuses("in words that turn the line around", "a\u202eb", `"a`+"\u202e"+`b"`),
		refuses("with members that look like ours", `{"code":"ok","charged":true,"refund":null}`, `{"charged":true,"code":"ok","refund":null}`, typeJSON),
		refuses("with a member twice", `{"a":1,"a":2}`, `"{\"a\":1,\"a\":2}"`, typeJSON),
		refuses("with brackets, 2 000 deep", strings.Repeat("[", 2000)+strings.Repeat("]", 2000), `"`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`"`, typeJSON),
		refuses("with half of a receipt", `{"receipt":{"payload":"evil"}`, `"{\"receipt\":{\"payload\":\"evil\"}"`, typeJSON),
		{name: "it turns the request down and never ends its reasons", plan: working(func(t *talk) { says("HTTP/1.1 400 Bad Request\r\n{forged}\r\n")(t); t.pour(strings.Repeat("e", 1<<16)) }),
			want: turnsDown(400).telling(`"` + long + `"`)},
		{name: "it turns the request down and does not say why, slowly", plan: working(func(t *talk) {
			says("HTTP/1.1 400 Bad Request\r\n{forged}Content-Length: 1000\r\n\r\n")(t)
			t.drip(strings.Repeat("x", 1000), 40*time.Millisecond)
		}), listing: map[string]any{"timeout_ms": 2000}, want: turnsDown(400).telling(`null`)},
		{name: "it turns the request down and hangs up within its reasons", plan: working(says("HTTP/1.1 422 Unprocessable Entity\r\n{forged}Content-Length: 1000\r\n\r\nevil")),
			want: turnsDown(422).telling(`null`)},
		{name: "it fails and never ends saying so", plan: working(func(t *talk) { says("HTTP/1.1 500 Oops\r\n{forged}\r\n")(t); t.pour(strings.Repeat("e", 1<<16)) }), want: failsInside},
	}
}
