package catalog

import (
	"encoding/json"
	"mime"
	"slices"
	"strconv"
	"time"

	"github.com/shopspring/decimal"
)

const (
	timeoutDefaultMS    = 10_000
	timeoutLowMS        = 100
	timeoutHighMS       = 120_000
	responseBytesMax    = 1 << 20
	trialCallsPerDayMax = 1_000_000
	mimeLenMax          = 100
	mimeDefault         = "application/json"
)

var (
	endpointMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	// servedStatuses are answers other than 2xx that a buyer may have paid for: "there is none" is a result.
	servedStatuses = []int{404, 409, 410}
)

// An EndpointDraft is a checked endpoint that is not stored yet.
type EndpointDraft struct {
	Method           string
	Path             string
	PriceUSD         decimal.Decimal
	Description      string
	MIMEType         string
	InputSchema      json.RawMessage
	InputExample     json.RawMessage
	OutputSchema     json.RawMessage
	OutputExample    json.RawMessage
	ServedStatuses   []int
	Timeout          time.Duration
	IdleTimeout      time.Duration
	MaxResponseBytes int
	TrialCallsPerDay int
	// TrialCallsPerCaller is what one caller gets of them; 0: as many as there are.
	TrialCallsPerCaller int
	Stream              bool

	template Template
}

// endpoint reads the object as an endpoint.
func (f *form) endpoint(rules Rules) EndpointDraft {
	e := EndpointDraft{
		Method:           f.choice("method", "", endpointMethods),
		Path:             f.text("path", 1, templateLenMax),
		PriceUSD:         f.price("price_usd", rules),
		Description:      f.text("description", 0, descriptionMax),
		Stream:           f.yes("stream"),
		ServedStatuses:   f.served("served_statuses"),
		TrialCallsPerDay: f.whole("trial_calls_per_day", 0, 0, trialCallsPerDayMax),
	}
	e.TrialCallsPerCaller = f.trialsPerCaller("trial_calls_per_caller", e.TrialCallsPerDay)
	e.MIMEType = f.mimeType("mime_type", e.Stream)
	f.limits(&e)
	if e.Path != "" {
		template, err := ParseTemplate(e.Path)
		if err != nil {
			f.wrong("path", "%s", err)
		}
		e.template = template
	}
	e.InputSchema, e.InputExample = f.schemaAndExample("input", e.Method != "" && !TakesBody(e.Method))
	e.OutputSchema, e.OutputExample = f.schemaAndExample("output", false)
	if e.Method == "HEAD" && e.OutputSchema != nil {
		f.wrong("output_schema", "must be left out for HEAD, whose answers have no body")
	}
	f.streaming(e)
	f.end()
	return e
}

func (f *form) price(name string, rules Rules) decimal.Decimal {
	text := f.text(name, 1, 64)
	if text == "" {
		return decimal.Decimal{}
	}
	if text == rules.stands {
		return decimal.RequireFromString(text) // it was written from one
	}
	usd, err := ParsePrice(text, rules)
	if err != nil {
		f.wrong(name, "%s", err)
	}
	return usd
}

// trialsPerCaller reads what one caller gets of a day's trial calls; 0 where it was left out.
func (f *form) trialsPerCaller(name string, perDay int) int {
	n := f.whole(name, 0, 1, trialCallsPerDayMax)
	if n > perDay {
		f.wrong(name, "must not be more than trial_calls_per_day, which is %d; leave it out for as many", perDay)
	}
	return n
}

func (f *form) mimeType(name string, stream bool) string {
	text := f.text(name, 0, mimeLenMax)
	if text == "" && stream {
		return eventStream
	}
	if text == "" {
		return mimeDefault
	}
	media, params, err := mime.ParseMediaType(text)
	if err != nil || !slices.Contains([]byte(media), '/') {
		f.wrong(name, "must be a media type, such as application/json")
		return mimeDefault
	}
	return mime.FormatMediaType(media, params)
}

func (f *form) served(name string) []int {
	statuses := []int{}
	for i, v := range f.list(name, 0, len(servedStatuses)) {
		n, _ := v.(json.Number)
		status, err := strconv.Atoi(string(n))
		switch {
		case err != nil || !slices.Contains(servedStatuses, status):
			f.report(f.pointer(name)+"/"+strconv.Itoa(i), "must be 404, 409 or 410; 2xx is always served")
		case slices.Contains(statuses, status):
			f.report(f.pointer(name)+"/"+strconv.Itoa(i), "appears twice")
		default:
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// schemaAndExample reads what a listing says about its input or output; parameters says that it describes query and path parameters.
func (f *form) schemaAndExample(of string, parameters bool) (schemaJSON, exampleJSON json.RawMessage) {
	schemaName, exampleName := of+"_schema", of+"_example"
	var compiled *schema
	if document, ok := f.jsonMember(schemaName); ok {
		if problem := schemaShape(document, parameters); problem != "" {
			f.wrong(schemaName, "%s", problem)
		} else if s, err := compileSchema(document); err != nil {
			f.wrong(schemaName, "%s", schemaProblem(err))
		} else {
			compiled, schemaJSON = s, encodeValue(document)
		}
	}
	example, ok := f.jsonMember(exampleName)
	if !ok {
		return schemaJSON, nil
	}
	if parameters && !parameterExample(example) {
		f.wrong(exampleName, "must be an object of query and path parameters, each a string or a list of several strings")
		return schemaJSON, nil
	}
	if compiled != nil {
		if err := compiled.check(example); err != nil {
			*f.problems = append(*f.problems, problemsOf(err, f.pointer(exampleName))...)
		}
	}
	return schemaJSON, encodeValue(example)
}

// jsonMember reads a member that is kept as JSON.
func (f *form) jsonMember(name string) (any, bool) {
	v, ok := f.member(name)
	switch {
	case !ok:
		return nil, false
	case len(encodeValue(v)) > schemaBytesMax:
		f.wrong(name, "must not be longer than %d bytes", schemaBytesMax)
		return nil, false
	case hasNUL(v):
		f.wrong(name, "must not have the character U+0000")
		return nil, false
	}
	return v, true
}

// schemaShape says what is wrong with a schema before it is compiled; empty for nothing.
func schemaShape(document any, parameters bool) string {
	object, ok := document.(map[string]any)
	if !ok {
		return "must be an object"
	}
	if kind, given := object["type"]; given && parameters && kind != "object" {
		return "must have the type object: it describes query and path parameters"
	}
	return ""
}
