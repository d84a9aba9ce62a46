package catalog

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/refusal"
)

const (
	// ListLimitMax and ListLimitDefault are how many services one page has.
	ListLimitMax     = 100
	ListLimitDefault = 20

	queryLenMax   = 200 // characters
	queryWordsMax = 8
	cursorPrefix  = "s2:"
)

// A Sort is the order of a list. The empty string is none.
type Sort string

const (
	ByAge       Sort = "created"   // oldest first
	ByRelevance Sort = "relevance" // what fits the words best first
	ByRecord    Sort = "record"    // what delivers best first
)

// Sorts returns every order.
func Sorts() []Sort { return []Sort{ByAge, ByRelevance, ByRecord} }

// networkForm is a CAIP-2 id, or the name that x402 v1 has for a network.
var networkForm = regexp.MustCompile(`^[a-z0-9-]{3,32}(:[a-zA-Z0-9-]{1,32})?$`)

// A Query says which services somebody looks for. ParseQuery makes one.
type Query struct {
	Text    string // as it was typed
	Network string // of our networks, by either name; empty: any
	// Offered says whether callers are asked to pay a price on that network; nil: whatever it is.
	Offered func(Price) bool
	Tag     string
	MaxUSD  *decimal.Decimal // at least one endpoint costs no more
	Status  State
	Sort    Sort
	Limit   int
	Cursor  string

	words []string
	after position
}

// A position is where a page ended: the key of its order, and the service.
type position struct {
	given bool
	key   int
	id    uuid.UUID
}

// DefaultQuery is what is asked by whoever asks for nothing in particular.
func DefaultQuery() Query { return Query{Status: Listed, Sort: ByAge, Limit: ListLimitDefault} }

// ParseQuery reads the parameters of a list. Nothing is guessed: the error is a *refusal.Error with InvalidParameter that names every parameter
// that is unknown, given twice or out of range, and the query beside it has what could be read. An empty query, network, max_price_usd, tag or
// cursor is none, as a form sends it.
func ParseQuery(given map[string][]string) (Query, error) {
	q := DefaultQuery()
	var problems []refusal.Field
	wrong := func(name, message string) { problems = append(problems, refusal.Field{Name: name, Message: message}) }
	sorted := ""
	for name, values := range given {
		if len(values) != 1 {
			wrong(name, "must not be given twice")
			continue
		}
		value := values[0]
		switch name {
		case "query":
			q.Text = value
			if message := q.readWords(); message != "" {
				wrong(name, message)
			}
		case "network":
			q.Network = value
			if value != "" && !networkForm.MatchString(value) {
				wrong(name, "must be a network such as eip155:8453")
			}
		case "tag":
			q.Tag = value
			if value != "" && !tagForm.MatchString(value) {
				wrong(name, fmt.Sprintf("must have 1 to %d lower-case letters, digits and inner hyphens", tagLenMax))
			}
		case "max_price_usd":
			if value == "" {
				continue
			}
			usd, err := ParsePrice(value, Rules{})
			if err != nil {
				wrong(name, err.Error())
				continue
			}
			q.MaxUSD = &usd
		case "status":
			q.Status = State(value)
			if !slices.Contains(States(), q.Status) {
				wrong(name, "must be one of "+oneOf(States()))
			}
		case "sort":
			sorted = value
			if !slices.Contains(Sorts(), Sort(value)) {
				wrong(name, "must be one of "+oneOf(Sorts()))
			}
		case "limit":
			limit, err := strconv.Atoi(value)
			if err != nil || limit < 1 || limit > ListLimitMax {
				wrong(name, fmt.Sprintf("must be a whole number from 1 to %d", ListLimitMax))
				continue
			}
			q.Limit = limit
		case "cursor":
			q.Cursor = value
		default:
			wrong(shorten(name, 60), "is no parameter of this list")
		}
	}
	switch {
	case sorted != "":
		q.Sort = Sort(sorted)
	case len(q.words) > 0:
		q.Sort = ByRelevance
	}
	if !q.readCursor() {
		wrong("cursor", "is not one that we gave out for this order")
	}
	if len(problems) == 0 {
		return q, nil
	}
	slices.SortFunc(problems, func(a, b refusal.Field) int { return strings.Compare(a.Name, b.Name) })
	no := refusal.New(call.InvalidParameter, "%s %s", problems[0].Name, problems[0].Message)
	no.Fields = problems
	return q, no
}

func oneOf[T ~string](values []T) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// readWords cuts the text into the words that have to be found, and says what is wrong with it.
func (q *Query) readWords() string {
	if !utf8.ValidString(q.Text) || strings.ContainsFunc(q.Text, unicode.IsControl) {
		q.Text = ""
		return "must be text without control characters"
	}
	if utf8.RuneCountInString(q.Text) > queryLenMax {
		return fmt.Sprintf("must not be longer than %d characters", queryLenMax)
	}
	q.words = strings.Fields(strings.ToLower(q.Text))
	if len(q.words) > queryWordsMax {
		return fmt.Sprintf("must not have more than %d words", queryWordsMax)
	}
	return ""
}

// readCursor says whether the cursor is one of this order. It names the order, so that one list is not continued as another.
func (q *Query) readCursor() bool {
	if q.Cursor == "" {
		return true
	}
	text, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return false
	}
	rest, ok := strings.CutPrefix(string(text), cursorPrefix+string(q.Sort)+":")
	if !ok {
		return false
	}
	key, id, _ := strings.Cut(rest, ":")
	at := position{given: true}
	if at.key, err = strconv.Atoi(key); err != nil || strconv.Itoa(at.key) != key {
		return false
	}
	if at.id, err = uuid.Parse(id); err != nil || at.id.String() != id {
		return false
	}
	q.after = at
	return true
}

func (q *Query) cursorAfter(h hit) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + string(q.Sort) + ":" + strconv.Itoa(h.key) + ":" + h.service.ID.String()))
}
