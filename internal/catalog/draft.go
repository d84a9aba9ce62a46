package catalog

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/capacity"
	"market/internal/refusal"
)

const (
	draftBytesMax  = 1 << 20
	tagsMax        = 5
	endpointsMax   = 100 // of one service, on the shelf
	slugLenMax     = 64
	probeBytesMax  = 4 << 10
	nameLenMax     = 80
	descriptionMax = 500
	tagLenMax      = 32
)

var (
	slugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	tagForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

	// The probe is sent every few seconds and nobody pays for it, so it must have no side effects. POST is for services that sell nothing else
	// and have no page of health: its provider says what to send, and answers for what that does.
	probeMethods = []string{"GET", "HEAD", "OPTIONS", "POST"}
)

// reservedSlugs would stand where the API, a page or a command has, or may get, a name of its own. What was listed before a name was reserved keeps it.
var reservedSlugs = map[string]bool{
	"admin": true, "api": true, "discovery": true, "facilitator": true, "help": true, "import": true, "market": true, "mcp": true,
	"new": true, "resend": true, "search": true, "static": true, "try": true, "uphold": true, "void": true,
}

// A Draft is a checked listing that is not stored yet.
type Draft struct {
	Slug        string
	Name        string
	Description string
	Tags        []string
	BaseURL     string
	Probe       Probe
	Capacity    capacity.Limit
	Headers     HeaderChange // for Secrets.SetHeaders
	Notices     Notices
	Endpoints   []EndpointDraft
	By          Author    // who lists it
	Owner       uuid.UUID // the account that it is listed for; zero: the operator itself
}

// ParseDraft reads the body of a request that creates a service. The error is a *refusal.Error with InvalidRequest and every problem
// that was found, each under its JSON pointer.
func ParseDraft(body []byte, rules Rules) (Draft, error) {
	var problems []refusal.Field
	f, err := openForm(body, &problems)
	if err != nil {
		return Draft{}, err
	}
	d := Draft{Slug: f.slug("slug")}
	f.service(&d, rules, false)
	for i, v := range f.list("endpoints", 1, endpointsMax) {
		if g, ok := newForm(f.pointer("endpoints")+"/"+strconv.Itoa(i), v, &problems); ok {
			d.Endpoints = append(d.Endpoints, g.endpoint(rules))
		}
	}
	f.end()
	if len(problems) == 0 {
		reportSameRoutes(f, d.Endpoints)
	}
	return d, refused(problems)
}

// service reads what a service says of itself and may change later; merge says that its headers are a change of those that there are.
func (f *form) service(d *Draft, rules Rules, merge bool) {
	d.Name = f.text("name", 1, nameLenMax)
	d.Description = f.text("description", 0, descriptionMax)
	d.Tags = f.tags("tags")
	d.BaseURL = f.baseURL("base_url", rules)
	d.Probe = f.probe("probe")
	d.Capacity = f.capacity("capacity")
	d.Headers = f.headersMember("headers", merge)
	d.Notices = f.notices(noticesMember, rules)
}

// ParseEndpointDraft reads the body of a request that adds an endpoint to a service.
func ParseEndpointDraft(body []byte, rules Rules) (EndpointDraft, error) {
	var problems []refusal.Field
	f, err := openForm(body, &problems)
	if err != nil {
		return EndpointDraft{}, err
	}
	return f.endpoint(rules), refused(problems)
}

func openForm(body []byte, problems *[]refusal.Field) (*form, error) {
	if len(body) > draftBytesMax {
		return nil, refusal.New(call.InvalidRequest, "the body must not be longer than %d bytes", draftBytesMax)
	}
	v, err := decodeValue(body)
	if err != nil {
		return nil, refusal.New(call.InvalidRequest, "the body %s", err)
	}
	f, ok := newForm("", v, problems)
	if !ok {
		return nil, refusal.New(call.InvalidRequest, "the body must be a JSON object")
	}
	return f, nil
}

func refused(problems []refusal.Field) error {
	if len(problems) == 0 {
		return nil
	}
	no := refusal.New(call.InvalidRequest, "the request has %d members that can't be accepted", len(problems))
	if len(problems) == 1 {
		no.Detail = strings.TrimSpace(problems[0].Name + " " + problems[0].Message) // the root has no name
	}
	no.Fields = problems
	return no
}

// reportSameRoutes finds endpoints that would answer the same requests.
func reportSameRoutes(f *form, endpoints []EndpointDraft) {
	first := map[string]int{}
	for i, e := range endpoints {
		route := e.Method + " " + e.template.Shape()
		if j, taken := first[route]; taken {
			f.report(f.pointer("endpoints")+"/"+strconv.Itoa(i)+"/path", "answers the same requests as endpoint %d", j)
			continue
		}
		first[route] = i
	}
}

func (f *form) slug(name string) string {
	s := f.text(name, 1, slugLenMax)
	switch {
	case s == "":
	case !slugForm.MatchString(s):
		f.wrong(name, "must have lower-case letters, digits and inner hyphens only")
	case reservedSlugs[s]:
		f.wrong(name, "is reserved")
	default:
		return s
	}
	return ""
}

func (f *form) tags(name string) []string {
	tags := []string{}
	seen := map[string]bool{}
	for i, v := range f.list(name, 0, tagsMax) {
		at := f.pointer(name) + "/" + strconv.Itoa(i)
		tag, ok := v.(string)
		switch {
		case !ok || !tagForm.MatchString(tag):
			f.report(at, "must have 1 to %d lower-case letters, digits and inner hyphens", tagLenMax)
		case seen[tag]:
			f.report(at, "appears twice")
		default:
			seen[tag] = true
			tags = append(tags, tag)
		}
	}
	return tags
}

func (f *form) baseURL(name string, rules Rules) string {
	text := f.text(name, 1, baseURLLenMax)
	if text == "" {
		return ""
	}
	stored, err := ParseBaseURL(text, rules)
	if err != nil {
		f.wrong(name, "%s", err)
	}
	return stored
}

func (f *form) probe(name string) Probe {
	v, ok := f.member(name)
	if !ok {
		if !f.given(name) {
			f.wrong(name, "is required")
		}
		return Probe{}
	}
	g, ok := newForm(f.pointer(name), v, f.problems)
	if !ok {
		return Probe{}
	}
	p := Probe{Method: g.choice("method", "GET", probeMethods), Path: g.text("path", 1, templateLenMax)}
	if p.Path != "" {
		if err := checkProbePath(p.Path); err != nil {
			g.wrong("path", "%s", err)
		}
	}
	var expressions []string
	for i, v := range g.list("statuses", 1, statusRangesMax) {
		s, ok := v.(string)
		if !ok {
			g.report(g.pointer("statuses")+"/"+strconv.Itoa(i), "must be a string")
			continue
		}
		expressions = append(expressions, s)
	}
	if len(expressions) > 0 {
		statuses, err := ParseStatuses(strings.Join(expressions, ","))
		if err != nil {
			g.wrong("statuses", "%s", err)
		}
		p.Statuses = statuses
	}
	p.Body = g.probeBody(p.Method)
	g.end()
	return p
}

// probeBody reads what is sent with a probe that has a body.
func (f *form) probeBody(method string) json.RawMessage {
	v, ok := f.jsonMember("body")
	if !ok {
		return nil
	}
	body := encodeValue(v)
	switch {
	case method != "POST":
		f.wrong("body", "must be left out unless the method is POST")
	case len(body) > probeBytesMax:
		f.wrong("body", "must not be longer than %d bytes", probeBytesMax)
	default:
		return body
	}
	return nil
}

// checkProbePath accepts what a template accepts, without parameters.
func checkProbePath(path string) error {
	t, err := ParseTemplate(path)
	if err != nil {
		return err
	}
	if strings.Contains(t.Shape(), "{}") {
		return fmt.Errorf("must not have parameters")
	}
	return nil
}
