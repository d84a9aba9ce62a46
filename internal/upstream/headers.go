package upstream

import (
	"net/http"
	"strings"
	"time"

	"market/internal/catalog"
)

const (
	headerValueMax  = 1024
	encodingsLenMax = 64
	userAgent       = "market-gateway/1"
	callHeader      = "Market-Call"
)

// Ours says whether a request carries what each request of ours to a service carries: a call or a probe that came back to us, by whatever way.
func Ours(h http.Header) bool { return h.Get(callHeader) != "" || h.Get("User-Agent") == userAgent }

// toService lists the caller's headers that a service gets, in their canonical spelling. Everything else stays here: what says who the
// caller is or pays with (Authorization, Cookie, X-PAYMENT, PAYMENT-SIGNATURE, User-Agent, Origin, Referer), what claims a way that the
// request took (Forwarded, X-Forwarded-*, Via), what belongs to one connection, and what would make a good answer one that we count as
// a failure or a part (If-*, Range, Expect). Names are compared whole, so X_Market_Payer is no spelling of anything in here.
var toService = []string{
	"Accept",
	"Accept-Encoding", // bytes pass through, so the caller may say which encodings it reads
	"Accept-Language",
	"Content-Type",
}

// toCaller lists a service's headers that the caller gets: those that describe the body, beside its encoding (answerHeader). A service does
// not speak for us to the caller: nothing about payments, cookies, caching, transport security, cross-origin rules, other places or calls.
var toCaller = []string{
	"Content-Disposition",
	"Content-Language",
	"Content-Type",
	"Etag",
	"Last-Modified",
}

// pass copies what the list names, first values only, and drops a value that is not plain or longer than anybody needs.
func pass(from http.Header, list []string) http.Header {
	to := http.Header{}
	for _, name := range list {
		values := from[name]
		if len(values) == 0 {
			continue
		}
		if value := strings.TrimSpace(values[0]); value != "" && len(value) <= headerValueMax && plain(value) {
			to.Set(name, value)
		}
	}
	return to
}

// plain says whether a value is visible ASCII, spaces and tabs: what every HTTP library on the way reads the same.
func plain(value string) bool {
	for i := range len(value) {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// dress adds to a request what its service wants to see in each, and what shows the service that we ask. Calls and probes go through here, so
// that both look the same to whatever stands before the service. What is ours comes last and stays.
func dress(h http.Header, s *catalog.Service, now time.Time) {
	for _, own := range s.Headers {
		h.Set(own.Name, own.Value.Reveal())
	}
	h.Set("User-Agent", userAgent)
	if secret := s.Secret.At(now).Reveal(); secret != "" {
		h.Set("Market-Secret", secret)
	}
}

// ContentEncoding returns the encodings of a body in the order in which they were applied, empty for none, and whether that can be relied on.
// Several headers are one list.
func ContentEncoding(h http.Header) (list string, ok bool) {
	values := h["Content-Encoding"]
	if len(values) == 0 {
		return "", true
	}
	list = strings.TrimSpace(strings.Join(values, ", "))
	if strings.EqualFold(list, "identity") {
		return "", true
	}
	for coding := range strings.SplitSeq(list, ",") {
		if coding = strings.TrimSpace(coding); coding == "" || strings.ContainsFunc(coding, notOfACoding) {
			return "", false
		}
	}
	return list, len(list) <= encodingsLenMax
}

func notOfACoding(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
}

// answerHeader makes the header that the caller gets with a served answer. The encoding goes with the bytes, whole or not at all: false is an
// answer whose bytes would reach the caller under another name than they have.
func answerHeader(h http.Header) (http.Header, bool) {
	to := pass(h, toCaller)
	encoding, ok := ContentEncoding(h)
	if encoding != "" {
		to.Set("Content-Encoding", encoding)
	}
	return to, ok
}

// requestHeader makes the header of a request to a service.
func requestHeader(r Request, now time.Time) http.Header {
	h := pass(r.Header, toService)
	if encoding, ok := ContentEncoding(r.Header); ok && encoding != "" {
		h.Set("Content-Encoding", encoding) // bytes that nobody here reads keep their label
	}
	dress(h, r.Service, now)
	h.Set(callHeader, r.CallID.String())
	h.Set("Idempotency-Key", r.CallID.String()) // for providers to use; see askOnce
	if len(r.Body) > 0 && r.Endpoint.ChecksInput() && h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json") // the body was checked to be that
	}
	if r.Endpoint.ChecksOutput() {
		h.Set("Accept-Encoding", "identity") // the answer has to be read here
	}
	return h
}
