package catalog

import (
	"encoding/json"
	"slices"
	"strconv"

	"market/internal/capacity"
)

// instant is how revisions write a time: as the API does, to the microsecond also where that is a zero.
const instant = "2006-01-02T15:04:05.000000Z07:00"

// A document is what can be edited of a service or an endpoint, as decoded JSON in the members of the API. A patch is laid over it, the result is
// checked as if it were new, and what differs is kept as a revision: so it holds no secret. A member that becomes editable is one more line.
type document map[string]any

func (s *Service) document() document {
	d := document{
		"name": s.Name, "description": s.Description, "tags": listOf(s.Tags), "base_url": s.BaseURL,
		"probe": probeDocument(s.Probe),
	}
	if limit := capacityDocument(s.Capacity); len(limit) > 0 {
		d["capacity"] = limit
	}
	if notices := noticesDocument(s.Notices); len(notices) > 0 {
		d[noticesMember] = notices
	}
	// Of headers it holds the names and when each was set, which is all that is ever shown.
	set := map[string]any{}
	for _, h := range s.Headers {
		set[h.Name] = h.SetAt.UTC().Format(instant)
	}
	if len(set) > 0 {
		d[headersMember] = set
	}
	return d
}

// headersMember is the one member that is only written: nothing is known of what stands there but that it does.
const headersMember = "headers"

func probeDocument(p Probe) map[string]any {
	d := map[string]any{"method": p.Method, "path": p.Path, "statuses": []any{p.Statuses.String()}}
	if len(p.Body) > 0 {
		d["body"], _ = decodeValue(p.Body) // as in Endpoint.document
	}
	return d
}

func capacityDocument(l capacity.Limit) map[string]any {
	d := map[string]any{}
	if l.Rate > 0 {
		d["requests_per_second"] = json.Number(l.Rate.String())
	}
	if l.Places > 0 {
		d["concurrency"] = number(l.Places)
	}
	return d
}

func (e *Endpoint) document() document {
	d := document{
		"method": e.Method, "path": e.Path, "description": e.Description, "mime_type": e.MIMEType, "served_statuses": numbersOf(e.ServedStatuses),
		"timeout_ms": number(int(e.Timeout.Milliseconds())), "max_response_bytes": number(e.MaxResponseBytes), "trial_calls_per_day": number(e.TrialCallsPerDay),
	}
	if e.Stream {
		d["stream"], d["idle_timeout_ms"] = true, number(int(e.IdleTimeout.Milliseconds()))
	}
	if e.TrialCallsPerCaller > 0 {
		d["trial_calls_per_caller"] = number(e.TrialCallsPerCaller)
	}
	if price, ok := e.Price(); ok {
		d["price_usd"] = price.USD.String()
	}
	for name, raw := range map[string]json.RawMessage{
		"input_schema": e.InputSchema, "input_example": e.InputExample, "output_schema": e.OutputSchema, "output_example": e.OutputExample,
	} {
		if len(raw) > 0 {
			// What cannot be read is shown as null, which has to be replaced before anything else can be changed.
			d[name], _ = decodeValue(raw)
		}
	}
	return d
}

func listOf(texts []string) []any {
	list := make([]any, len(texts))
	for i, t := range texts {
		list[i] = t
	}
	return list
}

func numbersOf(ints []int) []any {
	list := make([]any, len(ints))
	for i, n := range ints {
		list[i] = number(n)
	}
	return list
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// inner are the objects that are patched member by member. The others, schemas and examples, are values and may hold nulls of their own.
var inner = []string{"probe", "capacity", noticesMember}

// patched lays a patch over a document: a member that is given replaces the one that stands, null takes it away, and all others stay.
func (d document) patched(patch map[string]any) document {
	result := document{}
	for name, v := range d {
		result[name] = v
	}
	for name, v := range patch {
		over, isObject := v.(map[string]any)
		under, _ := d[name].(map[string]any)
		switch {
		case v == nil:
			delete(result, name)
		case isObject && slices.Contains(inner, name):
			result[name] = map[string]any(document(under).patched(over))
		default:
			result[name] = v
		}
	}
	return result
}

// without returns the members that differ from another document's.
func (d document) without(other document) document {
	differ := document{}
	for name, v := range d {
		if w, there := other[name]; !there || !sameValue(v, w) {
			differ[name] = v
		}
	}
	return differ
}
