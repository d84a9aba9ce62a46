package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

func dial(err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

func errno(e syscall.Errno) error { return dial(os.NewSyscallError("connect", e)) }

func TestClassify_BlamesTheServiceOnlyWithEvidence(t *testing.T) {
	t.Parallel()
	const (
		resolving = 1 << iota
		handshaking
		connected
		answered
	)
	tests := map[string]struct {
		err     error
		stage   int
		stopped bool
		want    call.Reason
	}{
		"a name that does not exist":           {dial(&net.DNSError{IsNotFound: true}), resolving, false, call.UpstreamUnreachable},
		"a resolver that fails":                {dial(&net.DNSError{IsTemporary: true}), resolving, false, call.EgressDown},
		"a resolver that does not answer":      {dial(&net.DNSError{IsTimeout: true}), resolving, false, call.EgressDown},
		"the deadline while resolving":         {context.DeadlineExceeded, resolving, false, call.EgressDown},
		"the deadline while connecting":        {context.DeadlineExceeded, 0, false, call.UpstreamTimeout},
		"the deadline in the handshake":        {context.DeadlineExceeded, handshaking, false, call.UpstreamTimeout},
		"the deadline on a connection":         {context.DeadlineExceeded, connected | resolving, false, call.UpstreamTimeout},
		"the deadline in the answer":           {context.DeadlineExceeded, connected | answered, false, call.UpstreamTimeout},
		"a connect timeout of the system":      {errno(syscall.ETIMEDOUT), 0, false, call.UpstreamTimeout},
		"a timeout of the dialer":              {dial(os.ErrDeadlineExceeded), 0, false, call.UpstreamTimeout},
		"a forbidden address":                  {dial(&forbiddenAddressError{"127.0.0.1:80"}), 0, false, call.UpstreamUnreachable},
		"refused":                              {errno(syscall.ECONNREFUSED), 0, false, call.UpstreamUnreachable},
		"no route to the network":              {errno(syscall.ENETUNREACH), 0, false, call.EgressDown},
		"no route to the host":                 {errno(syscall.EHOSTUNREACH), 0, false, call.EgressDown},
		"no free port":                         {errno(syscall.EADDRNOTAVAIL), 0, false, call.EgressDown},
		"too many files here":                  {errno(syscall.EMFILE), 0, false, call.EgressDown},
		"too many files on the machine":        {errno(syscall.ENFILE), 0, false, call.EgressDown},
		"not allowed by our own firewall":      {errno(syscall.EPERM), 0, false, call.EgressDown},
		"reset before a byte":                  {errno(syscall.ECONNRESET), connected, false, call.UpstreamUnreachable},
		"reset while connecting":               {errno(syscall.ECONNRESET), 0, false, call.UpstreamUnreachable},
		"reset in the handshake":               {errno(syscall.ECONNRESET), handshaking, false, call.UpstreamUnreachable},
		"reset in the answer":                  {errno(syscall.ECONNRESET), connected | answered, false, call.UpstreamBadResponse},
		"closed before a byte":                 {io.EOF, connected, false, call.UpstreamUnreachable},
		"closed before a byte, without a type": {errors.New("server closed idle connection"), connected, false, call.UpstreamUnreachable},
		"closed in the handshake":              {io.EOF, handshaking, false, call.UpstreamUnreachable},
		"cut short":                            {io.ErrUnexpectedEOF, connected | answered, false, call.UpstreamBadResponse},
		"malformed, without a type":            {errors.New("malformed HTTP response"), connected | answered, false, call.UpstreamBadResponse},
		"a certificate that does not verify":   {&tls.CertificateVerificationError{Err: errors.New("x")}, 0, false, call.UpstreamUnreachable},
		"no TLS at all":                        {tls.RecordHeaderError{}, 0, false, call.UpstreamUnreachable},
		"no list of authorities here":          {&tls.CertificateVerificationError{Err: x509.SystemRootsError{}}, handshaking, false, call.LocalError},
		"what nobody thought of":               {errors.New("net/http: invalid header field"), 0, false, call.LocalError},
		"stopped here":                         {context.Canceled, connected, true, call.LocalError},
		"stopped here, seen as a deadline":     {context.DeadlineExceeded, connected, true, call.LocalError},
	}
	for name, tt := range tests {
		var p progress
		p.resolving.Store(tt.stage&resolving != 0)
		p.handshaking.Store(tt.stage&handshaking != 0)
		p.connected.Store(tt.stage&connected != 0)
		p.answered.Store(tt.stage&answered != 0)
		got := classify(fmt.Errorf("wrapped: %w", tt.err), &p, tt.stopped)
		if got.reason != tt.want || got.detail == "" {
			t.Errorf("%s: reason = %q (%s), want %q", name, got.reason, got.detail, tt.want)
		}
		if row, ok := call.RowOf(got.reason); !ok || row.Outcome != call.Failed {
			t.Errorf("%s: %q is no reason of a failure", name, got.reason)
		}
	}
}

func TestStatusCause_GivesEveryStatusOneReason(t *testing.T) {
	t.Parallel()
	e := &catalog.Endpoint{ServedStatuses: []int{409}}
	want := func(status int) call.Reason {
		switch {
		case status == 409 || (status >= 200 && status < 300):
			return call.OK
		case status < 200 || status > 599 || status == 304:
			return call.UpstreamBadResponse
		case status < 400:
			return call.UpstreamRedirect
		case status >= 500:
			return call.Upstream5xx
		case status == 401 || status == 407:
			return call.UpstreamAuth
		case status == 402:
			return call.UpstreamPaymentRequired
		case status == 429:
			return call.UpstreamThrottled
		}
		return call.RejectedByService
	}
	for status := range 1000 {
		if got := statusCause(e, status); got.reason != want(status) || (got.detail == "") != (got.reason == call.OK) {
			t.Errorf("%d: %q (%s), want %q", status, got.reason, got.detail, want(status))
		}
	}
}

func TestRetryAfter_ReadsBothFormsAndCutsLongWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for name, tt := range map[string]struct {
		value string
		want  time.Duration
	}{
		"nothing":                 {"", 0},
		"seconds":                 {"7", 7 * time.Second},
		"no seconds":              {"0", 0},
		"ten minutes":             {"600", 10 * time.Minute},
		"one second more":         {"601", 10 * time.Minute},
		"more than fits":          {"99999999999999999999", 10 * time.Minute},
		"negative":                {"-5", 0},
		"a fraction":              {"1.5", 0},
		"words":                   {"soon", 0},
		"a date":                  {in(90 * time.Second), 90 * time.Second},
		"a date now":              {in(0), 0},
		"a date that has passed":  {in(-time.Hour), 0},
		"a date in ten minutes":   {in(10 * time.Minute), 10 * time.Minute},
		"a date tomorrow":         {in(24 * time.Hour), 10 * time.Minute},
		"a date of the year 9999": {"Fri, 31 Dec 9999 23:59:59 GMT", 10 * time.Minute},
	} {
		if got := retryAfter(tt.value, now); got != tt.want {
			t.Errorf("%s: retryAfter(%q) = %v, want %v", name, tt.value, got, tt.want)
		}
	}
}

func TestClient_Ask_TellsHowLongAThrottledServiceWantsToRest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, value := range []string{"30", now.Add(30 * time.Second).Format(http.TimeFormat)} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		client := New(Options{AllowPrivate: true, Now: func() time.Time { return now }})
		got := client.Ask(t.Context(), requestTo(serviceAt(t, server.URL, nil)))
		if got.Reason != call.UpstreamThrottled || got.RetryAfter != 30*time.Second {
			t.Errorf("%q: reason = %q, wait %v, want %q, 30s", value, got.Reason, got.RetryAfter, call.UpstreamThrottled)
		}
	}
}
