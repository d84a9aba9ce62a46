package hostiletest

import (
	"fmt"
	"strings"
)

func framingRows() []row {
	const ok = "HTTP/1.1 200 OK\r\n{forged}Content-Type: application/json\r\n"
	plainOf := func(name, text string, w want) row { return row{name: name, plan: working(says(text)), want: w} }
	chunksOf := func(name, text string, w want) row { return row{name: name, plan: working(chunked(text)), want: w} }
	return []row{
		plainOf("it cuts its answer short (B93)", ok+"Content-Length: 1000\r\n\r\n"+done, badResponse),
		plainOf("it closes before the first byte of the body (B93)", ok+"Content-Length: 13\r\n\r\n", badResponse),
		plainOf("it closes within its headers", "HTTP/1.1 200 OK\r\nContent-Ty", badResponse),
		plainOf("it closes within the status line", "HTTP/1.1 2", badResponse),
		plainOf("it sends more than it announced", ok+"Content-Length: 13\r\n\r\n"+done+"evil and more", serves(done)),
		plainOf("it sends two answers for one question", answer("200 OK", done, typeJSON)+answer("200 OK", `{"evil":true}`, typeJSON), serves(done)),
		{name: "it sends two answers and is asked again", plan: working(func(t *talk) {
			t.eat()
			t.keep = true
			t.say(answer("200 OK", done, typeJSON) + answer("200 OK", `{"evil":true}`, typeJSON))
		}), calls: 3, want: serves(done)},
		plainOf("it announces two lengths", ok+"Content-Length: 13\r\nContent-Length: 9\r\n\r\n"+done, badResponse),
		plainOf("it announces two lengths in one header", ok+"Content-Length: 13, 9\r\n\r\n"+done, badResponse),
		plainOf("it announces one length twice", ok+"Content-Length: 13\r\nContent-Length: 13\r\n\r\n"+done, serves(done)),
		plainOf("it announces less than nothing", ok+"Content-Length: -1\r\n\r\n"+done, badResponse),
		plainOf("it announces a length with a sign", ok+"Content-Length: +13\r\n\r\n"+done, badResponse),
		plainOf("it announces a length in hexadecimal", ok+"Content-Length: 0xd\r\n\r\n"+done, badResponse),
		plainOf("it announces more than a number holds", ok+"Content-Length: 99999999999999999999\r\n\r\n"+done, badResponse),
		plainOf("it announces 5 GB", ok+"Content-Length: 5368709120\r\n\r\n"+done, tooLarge),
		plainOf("it gives a length and chunks", ok+"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n"+done+"\r\n0\r\n\r\n", serves(done)),
		plainOf("it names an unknown transfer coding", ok+"Transfer-Encoding: evil\r\n\r\n"+done, badResponse),
		plainOf("it names two transfer codings", ok+"Transfer-Encoding: gzip, chunked\r\n\r\nd\r\n"+done+"\r\n0\r\n\r\n", badResponse),
		plainOf("it sends two Transfer-Encoding headers", ok+"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\nd\r\n"+done+"\r\n0\r\n\r\n", badResponse),
		plainOf("it ends its answer by closing", ok+"\r\n"+done, serves(done)),
		plainOf("it speaks HTTP/1.0", "HTTP/1.0 200 OK\r\n{forged}Content-Type: application/json\r\n\r\n"+done, serves(done)),
		plainOf("it speaks HTTP/0.9: a body and nothing else", done, badResponse),
		plainOf("it calls itself HTTP/2.0 on a connection of HTTP/1.1", "HTTP/2.0 200 OK\r\n{forged}Content-Length: 13\r\n\r\n"+done, serves(done)),
		plainOf("it calls itself HTTP/9.9", "HTTP/9.9 200 OK\r\n{forged}Content-Length: 13\r\n\r\n"+done, serves(done)),
		plainOf("it speaks the protocol of radio stations", "ICY 200 OK\r\n\r\n"+done, badResponse),
		plainOf("it speaks HTTP/2 without being asked", "\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x0f\x00\x01\r\n\r\n", badResponse),
		plainOf("it answers garbage", strings.Repeat("\x00\xff\x13evil", 1000)+"\r\n\r\n", badResponse),
		plainOf("it begins with an empty line", "\r\n"+answer("200 OK", done, typeJSON), badResponse),
		plainOf("it ends its lines without carriage returns", "HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 13\n\n"+done, serves(done)),
		{name: "it writes one line without an end", plan: working(func(t *talk) { t.eat(); t.pour(strings.Repeat("x", 1<<15)) }), want: badResponse},
		{name: "it writes a status line without an end", plan: working(func(t *talk) { t.eat(); t.say("HTTP/1.1 200 "); t.pour(strings.Repeat("x", 1<<15)) }), want: badResponse},

		chunksOf("it sends chunks", "6\r\n{\"done\r\n7\r\n\":true}\r\n0\r\n\r\n", serves(done)),
		chunksOf("it sends a chunk that ends early (B93)", "100\r\n"+done, badResponse),
		chunksOf("it sends no last chunk (B93)", "d\r\n"+done+"\r\n", badResponse),
		chunksOf("it ends within the end of the chunks (B93)", "d\r\n"+done+"\r\n0\r\n", badResponse),
		chunksOf("it sends a chunk size that is no number", "zz\r\n"+done+"\r\n0\r\n\r\n", badResponse),
		chunksOf("it sends a chunk size below nothing", "-d\r\n"+done+"\r\n0\r\n\r\n", badResponse),
		chunksOf("it sends a chunk size that overflows", "ffffffffffffffffd\r\n"+done+"\r\n0\r\n\r\n", badResponse),
		chunksOf("it sends a chunk size of 8 EiB and then little (B93)", "7fffffffffffffff\r\n"+done, badResponse),
		chunksOf("it sends a chunk longer than its size", "3\r\n"+done+"\r\n0\r\n\r\n", badResponse),
		chunksOf("it ends its chunks with line feeds alone", "d\n"+done+"\n0\n\n", badResponse),
		chunksOf("it names forged trailers", "d\r\n"+done+"\r\n0\r\nMarket-Outcome: evil\r\nSet-Cookie: evil=1\r\nPAYMENT-RESPONSE: evil\r\nContent-Type: text/evil\r\n\r\n", serves(done)),
		chunksOf("it sends trailers that are too large", "d\r\n"+done+"\r\n0\r\nX-Evil: "+strings.Repeat("evil", 1<<18)+"\r\n\r\n", badResponse),
		chunksOf("it hides words behind each chunk size", "d;evil=\"1\"\r\n"+done+"\r\n0;evil\r\n\r\n", serves(done)),
		{name: "it hides a flood behind its chunk sizes", plan: working(func(t *talk) {
			chunked("")(t)
			t.pour("1;" + strings.Repeat("e", 3000) + "\r\nx\r\n")
		}), want: badResponse},
		{name: "it sends a body of one-byte chunks without end", plan: working(func(t *talk) { chunked("")(t); t.pour(strings.Repeat("1\r\nx\r\n", 4096)) }),
			listing: map[string]any{"max_response_bytes": 4096}, want: tooLarge},
		{name: "it sends many empty headers in a trailer without end", plan: working(func(t *talk) { chunked("d\r\n" + done + "\r\n0\r\n")(t); t.pour("A: b\r\n") }), want: badResponse},
		{name: "it announces the body's end in a trailer that never comes", plan: working(func(t *talk) { chunked("d\r\n"+done+"\r\n0\r\n", "Trailer: X-Evil")(t); t.wait() }),
			listing: soon(), want: timeout},
		{name: fmt.Sprintf("it sends a first chunk size of %d zeros", 1<<16), plan: working(chunked(strings.Repeat("0", 1<<16) + "d\r\n" + done + "\r\n0\r\n\r\n")), want: badResponse},
	}
}
