package catalog

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"market/internal/config"
	"market/internal/refusal"
)

const (
	headersMax         = 10
	headerNameLenMax   = 64
	headerValueLenMax  = 2 << 10
	headersBytesMax    = 8 << 10 // names and values of one service: well below what common servers take for a whole head
	headerNameSymbols  = "!#$%&'*+-.^_`|~"
	headerMembersNamed = 60
)

// A ServiceHeader is one that a service wants to see in every request of ours. Its value is there only in a Snapshot.
type ServiceHeader struct {
	Name  string // in canonical spelling
	Value config.Secret
	SetAt time.Time
}

// A HeaderChange is a checked change of a service's headers.
type HeaderChange struct {
	Replace bool                     // what is not set goes
	Set     map[string]config.Secret // by canonical name
	Remove  []string                 // canonical names
}

func (c HeaderChange) empty() bool { return !c.Replace && len(c.Set) == 0 && len(c.Remove) == 0 }

// reservedHeaders are set by us, or belong to one connection, or would turn a good answer into one that we can't deliver. A star ends a prefix.
var reservedHeaders = []string{
	"Accept", "Accept-*", "Alt-Used", "Connection", "Content-*", "Date", "Expect", "Forwarded", "Host", "Http2-Settings", "Idempotency-Key",
	"If-*", "Keep-Alive", "Market-*", "Max-Forwards", "Payment-*", "Proxy-*", "Range", "Sign-In-With-X", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", "User-Agent", "Via", "X-Forwarded-*", "X-Market-*", "X-Payment", "X-Payment-*", "X-Real-Ip",
}

// ReservedHeader says whether a listing may not set a header. Servers that fold spellings take "_" and "." for "-", so we do.
func ReservedHeader(name string) bool {
	name = http.CanonicalHeaderKey(strings.NewReplacer("_", "-", ".", "-").Replace(name))
	return slices.ContainsFunc(reservedHeaders, func(r string) bool {
		prefix, open := strings.CutSuffix(r, "*")
		return name == r || open && strings.HasPrefix(name, prefix)
	}) || strings.HasSuffix(name, "Idempotency-Key") // net/http takes more than one spelling for leave to send a request again
}

// ParseHeaders reads the body of a request that changes the headers of a service: an object of names and values. With merge, null removes one
// and what is not named stays; without, what is given is all that there will be.
func ParseHeaders(body []byte, merge bool) (HeaderChange, error) {
	var problems []refusal.Field
	f, err := openForm(body, &problems)
	if err != nil {
		return HeaderChange{}, err
	}
	return f.headers(merge), refused(problems)
}

// headersMember reads a member that holds headers; an absent one changes nothing.
func (f *form) headersMember(name string, merge bool) HeaderChange {
	v, ok := f.member(name)
	if !ok {
		return HeaderChange{}
	}
	g, ok := newForm(f.pointer(name), v, f.problems)
	if !ok {
		return HeaderChange{}
	}
	return g.headers(merge)
}

// headers reads the object as names and values. Problems name the header and never repeat a value.
func (f *form) headers(merge bool) HeaderChange {
	change := HeaderChange{Replace: !merge, Set: map[string]config.Secret{}}
	if len(f.members) > headersMax {
		f.report(f.at, "must have at most %d headers", headersMax)
		return change
	}
	seen, size := map[string]bool{}, 0
	for _, given := range slices.Sorted(maps.Keys(f.members)) {
		name, at := http.CanonicalHeaderKey(given), shorten(given, headerMembersNamed)
		value, isText := f.members[given].(string)
		switch removed := merge && f.members[given] == nil; {
		case !headerName(given):
			f.wrong(at, "must be a header name: 1 to %d letters, digits and %s", headerNameLenMax, headerNameSymbols)
		case ReservedHeader(given):
			f.wrong(at, "is a header that a listing must not set")
		case seen[name]:
			f.wrong(at, "names the same header as another member")
		case removed:
			change.Remove = append(change.Remove, name)
		case !isText || !headerValue(value):
			f.wrong(at, "must be a string of 1 to %d printable ASCII characters without spaces around", headerValueLenMax)
		default:
			change.Set[name] = config.NewSecret(value)
			size += len(name) + len(value)
		}
		seen[name] = true
	}
	if size > headersBytesMax {
		f.report(f.at, "must not be longer than %d bytes, names and values together", headersBytesMax)
	}
	return change
}

func headerName(name string) bool {
	return len(name) >= 1 && len(name) <= headerNameLenMax && !strings.ContainsFunc(name, func(r rune) bool {
		letterOrDigit := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letterOrDigit && !strings.ContainsRune(headerNameSymbols, r)
	})
}

func headerValue(value string) bool {
	return len(value) >= 1 && len(value) <= headerValueLenMax && strings.TrimSpace(value) == value &&
		!strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

// tooManyHeaders says what is wrong with the headers that a merge would leave; empty for nothing.
func tooManyHeaders(count, size int) string {
	switch {
	case count > headersMax:
		return fmt.Sprintf("the service would have more than %d headers", headersMax)
	case size > headersBytesMax:
		return fmt.Sprintf("the service would have headers of more than %d bytes, names and values together", headersBytesMax)
	}
	return ""
}
