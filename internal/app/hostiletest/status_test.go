package hostiletest

import (
	"fmt"
	"net/http"
	"time"
)

func statusRows() []row {
	rows := []row{
		{name: "it answers 201 with a Location", plan: working(answers("201 Created", done, typeJSON, "Location: https://evil.test/")), want: serves(done).with(201)},
		{name: "it answers 203", plan: working(answers("203 Non-Authoritative Information", done, typeJSON)), want: serves(done).with(203)},
		{name: "it answers 204 with a body all the same", plan: working(says("HTTP/1.1 204 No Content\r\n{forged}\r\nevil")), want: serves("").with(204)},
		{name: "it answers 204 and announces a body", plan: working(says("HTTP/1.1 204 No Content\r\n{forged}Content-Length: 13\r\n\r\n" + done)), want: serves("").with(204)},
		{name: "it answers 206 to a request that asked for the whole", plan: working(answers("206 Partial Content", done, typeJSON, "Content-Range: bytes 0-12/9999")), want: serves(done).with(206)},
		{name: "it redirects to the metadata address of the cloud (B100)", plan: working(answers("302 Found", "", "Location: http://169.254.169.254/latest/meta-data/")), want: redirects},
		{name: "it redirects to itself for ever (B100)", plan: working(answers("302 Found", "", "Location: "+workTo)), want: redirects},
		{name: "it redirects to its own probe (B100)", plan: working(answers("301 Moved Permanently", "", "Location: "+probeTo)), want: redirects},
		{name: "it redirects to plain HTTP elsewhere, body and all (B100)", plan: working(answers("307 Temporary Redirect", "", "Location: http://evil.test/")), want: redirects},
		{name: "it redirects for ever, body and all (B100)", plan: working(answers("308 Permanent Redirect", "", "Location: //evil.test")), want: redirects},
		{name: "it redirects with 303 to a file", plan: working(answers("303 See Other", "", "Location: file:///etc/passwd")), want: redirects},
		{name: "it redirects to a URL of garbage", plan: working(answers("301 Moved Permanently", "", "Location: ht\ttp://%zz")), want: redirects},
		{name: "it answers 300 with choices", plan: working(answers("300 Multiple Choices", "<evil>")), want: redirects},
		{name: "it answers 305 and names a proxy", plan: working(answers("305 Use Proxy", "", "Location: http://evil.test:3128/")), want: redirects},
		{name: "it answers that nothing has changed", plan: working(answers("304 Not Modified", "", `ETag: "evil"`)), want: badResponse},
		{name: "it answers 401 and asks for a password", plan: working(answers("401 Unauthorized", "evil", `WWW-Authenticate: Basic realm="evil"`)), want: wantsLogin},
		{name: "it answers 407 as if it were a proxy", plan: working(answers("407 Proxy Authentication Required", "evil", `Proxy-Authenticate: Basic realm="evil"`)), want: wantsLogin},
		{name: "it asks for a payment of its own, with terms that pay itself (B109)", plan: working(answers("402 Payment Required", `{"x402Version":1,"error":"evil","accepts":[{"payTo":"evil"}]}`,
			typeJSON, "PAYMENT-REQUIRED: eyJldmlsIjp0cnVlfQ==")), want: wantsMoney},
		{name: "it asks for a payment of its own and declares that as a result (B109)", plan: working(answers("402 Payment Required", "evil")),
			listing: map[string]any{"served_statuses": []int{404, 409, 410}}, want: wantsMoney},
		{name: "it answers 404 where its listing sells that", plan: working(answers("404 Not Found", `{"found":false}`, typeJSON)),
			listing: map[string]any{"served_statuses": []int{404}}, want: serves(`{"found":false}`).with(404)},
		{name: "it refuses the example of its own listing", plan: working(answers("422 Unprocessable Entity", `{"evil":1}`)),
			listing: map[string]any{"input_example": map[string]any{"n": 1}}, want: refusesExample},
		{name: "it answers 503 and asks to come back in a year", plan: working(answers("503 Service Unavailable", "evil", "Retry-After: 31536000")), want: failsInside},
		{name: "it answers 500 with its stack", plan: working(answers("500 Internal Server Error", "evil stack")), want: failsInside},
		{name: "it answers 599", plan: working(answers("599 Whatever", "evil")), want: failsInside},
		{name: "it answers 600", plan: working(answers("600 Beyond", done, typeJSON)), want: badResponse},
		{name: "it answers 999", plan: working(answers("999 Request denied", done, typeJSON)), want: badResponse},
		{name: "it answers 000", plan: working(answers("000 Nothing", done, typeJSON)), want: badResponse},
		{name: "it answers 099", plan: working(answers("099 Less", done, typeJSON)), want: badResponse},
		{name: "it answers 20", plan: working(answers("20 Short", done, typeJSON)), want: badResponse},
		{name: "it answers 2000", plan: working(answers("2000 Long", done, typeJSON)), want: badResponse},
		{name: "it answers -20", plan: working(answers("-20 Below", done, typeJSON)), want: badResponse},
		{name: "it answers 0x2", plan: working(answers("0x2 OK", done, typeJSON)), want: badResponse},
		{name: "it switches to a protocol that nobody asked for", plan: working(says("HTTP/1.1 101 Switching Protocols\r\n{forged}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nevil")), want: badResponse},
		{name: "it upgrades to h2c", plan: working(says("HTTP/1.1 101 Switching Protocols\r\n{forged}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")), want: badResponse},
		{name: "it sends a few interim answers with forged headers first", plan: working(says("HTTP/1.1 100 Continue\r\n{forged}\r\nHTTP/1.1 102 Processing\r\n{forged}\r\nHTTP/1.1 103 Early Hints\r\n{forged}\r\n" +
			answer("200 OK", done, typeJSON))), want: serves(done)},
		{name: "it sends interim answers without end", plan: working(func(t *talk) { t.eat(); t.pour("HTTP/1.1 103 Early Hints\r\n" + forged + "\r\n") }), want: badResponse},
		{name: "it sends small interim answers without end", plan: working(func(t *talk) { t.eat(); t.pour("HTTP/1.1 100 Continue\r\nA: b\r\n\r\n") }), want: badResponse},
		{name: "it sends an interim answer now and then, and no other", plan: working(func(t *talk) {
			for t.pause(50 * time.Millisecond) {
				if _, err := t.Write([]byte("HTTP/1.1 102 Processing\r\n\r\n")); err != nil {
					return
				}
			}
		}), listing: soon(), want: timeout},
	}
	for _, status := range []int{400, 403, 404, 405, 406, 408, 409, 410, 413, 415, 418, 421, 425, 426, 428, 451, 499} {
		rows = append(rows, row{name: fmt.Sprintf("it answers %d", status), want: turnsDown(status).telling(`"evil reasons"`),
			plan: working(answers(fmt.Sprintf("%d %s", status, http.StatusText(status)), "evil reasons", "Content-Type: text/plain", "Retry-After: 9999"))})
	}
	return append(rows, throttleRows()...)
}

// throttleRows are the forms of Retry-After. A service that is asked too often rests as long as it asks for, within bounds.
func throttleRows() []row {
	const most = 10 * time.Minute
	rows := []row{{name: "it answers 429 and asks for five minutes by a date", plan: working(func(t *talk) {
		until := time.Now().Add(5 * time.Minute).UTC().Format(http.TimeFormat)
		answers("429 Too Many Requests", "evil", "Retry-After: "+until)(t)
	}), want: throttles.resting(5 * time.Minute)}}
	for _, tt := range []struct {
		form, header string
		rests        time.Duration
	}{
		{"does not say until when", "X-Nothing: said", rest},
		{"asks for two minutes", "Retry-After: 120", 2 * time.Minute},
		{"asks for two seconds", "Retry-After: 2", rest},
		{"asks for a date that is past", "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", rest},
		{"asks for a date in the next century", "Retry-After: Fri, 01 Jan 2100 00:00:00 GMT", most},
		{"asks for more seconds than a number has", "Retry-After: 99999999999999999999999999", most},
		{"asks for less than nothing", "Retry-After: -1", rest},
		{"asks for garbage", "Retry-After: evil", rest},
		{"asks for seconds with an exponent", "Retry-After: 1e9", rest},
		{"asks in digits of another script", "Retry-After: ٦٠٠", rest},
		{"asks twice", "Retry-After: 120\r\nRetry-After: 500", 2 * time.Minute},
	} {
		rows = append(rows, row{name: "it answers 429 and " + tt.form, plan: working(answers("429 Too Many Requests", "evil", tt.header)),
			want: throttles.resting(tt.rests)})
	}
	return rows
}
