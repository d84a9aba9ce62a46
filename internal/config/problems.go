package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"

	"market/internal/crash"
)

// problems collects what is wrong, at most one line a variable: a value that could not be read is not also out of range.
type problems struct {
	values map[string]string // what is set, and to something
	known  map[string]Variable
	order  []string
	lines  map[string][]error // by variable
}

func newProblems(environ []string, target any) *problems {
	p := &problems{values: map[string]string{}, known: map[string]Variable{}, lines: map[string][]error{}}
	for name, value := range env.ToMap(environ) {
		if value != "" {
			p.values[name] = value
		}
	}
	for _, v := range variables(reflect.TypeOf(target).Elem(), "", "") {
		p.known[v.Name] = v
		p.order = append(p.order, v.Name)
	}
	return p
}

// parse fills the struct. Its parser names the field in an error and repeats the value, so the text is our own.
func (p *problems) parse(target any) {
	err := env.ParseWithOptions(target, env.Options{Environment: p.values})
	var all env.AggregateError
	if err == nil {
		return
	}
	if !errors.As(err, &all) {
		p.lines[""] = append(p.lines[""], err)
		return
	}
	for _, err := range all.Errors {
		var failed env.ParseError
		if !errors.As(err, &failed) {
			p.lines[""] = append(p.lines[""], err)
			continue
		}
		for _, v := range p.known {
			if v.field == failed.Name {
				p.wrong(v.Name)
			}
		}
	}
}

// wrong reports a variable whose value is not what it should be.
func (p *problems) wrong(name string) {
	v := p.known[name]
	value, set := p.values[name]
	switch {
	case !set:
		p.say(name, "missing, expected %s", v.expect)
	case v.secret:
		p.say(name, "got a value that is not shown, expected %s", v.expect)
	default:
		p.say(name, "got %q, expected %s", shorten(value), v.expect)
	}
}

// say reports a variable in other words. Only the first report of one counts.
func (p *problems) say(name, format string, args ...any) {
	if len(p.lines[name]) == 0 {
		p.lines[name] = []error{fmt.Errorf(name+": "+format, args...)}
	}
}

// fileLine adds one of several lines about the file that a variable names.
func (p *problems) fileLine(name string, err error) {
	p.lines[name] = append(p.lines[name], fmt.Errorf("%s: %q: %w", name, shorten(p.values[name]), err))
}

func (p *problems) ok(name string) bool { return len(p.lines[name]) == 0 }

// check reports a variable unless its value is good.
func (p *problems) check(name string, good bool) {
	if !good {
		p.wrong(name)
	}
}

// elsewhere are variables of ours that other programs of this repository read.
var elsewhere = map[string]bool{"MARKET_CALLER_KEY": true, "MARKET_TEST_DATABASE_URL": true}

// serviceLink is what Kubernetes puts into the environment for a service that is called market or market-something.
var serviceLink = regexp.MustCompile(`^MARKET_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

func (p *problems) unknown() {
	for name, value := range p.values {
		if name == crash.Variable && crash.Enabled {
			p.checkCrash(name, value)
			continue
		}
		if _, known := p.known[name]; ours(name) && !known && !elsewhere[name] && !serviceLink.MatchString(name) {
			p.say(name, "not known (yet)")
		}
	}
}

// checkCrash is for programs of the tests alone: one that dies nowhere, because nobody knows the place, proves nothing.
func (p *problems) checkCrash(name, value string) {
	if !crash.Known(value) {
		p.say(name, "there is no point %q", shorten(value))
	}
}

// err joins the lines: in the order of the table, then what is not in it by name.
func (p *problems) err() error {
	var all []error
	for _, name := range p.order {
		all = append(all, p.lines[name]...)
		delete(p.lines, name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.lines)) {
		all = append(all, p.lines[name]...)
	}
	return errors.Join(all...)
}

// shorten keeps a line a line: values come from outside.
func shorten(value string) string {
	const max = 100
	if len(value) > max {
		return strings.ToValidUTF8(value[:max], "") + "…"
	}
	return value
}
