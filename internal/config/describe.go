package config

import (
	"reflect"
	"strings"
)

// A Variable is one line of the table of the environment.
type Variable struct {
	Name    string
	Default string // as it is shown; empty: none
	Meaning string

	expect string
	field  string // of the struct, by which the parser names it
	secret bool
}

// Describe returns the table of the environment, in the order of Config, from the tags that Load reads.
func Describe() []Variable { return variables(reflect.TypeFor[Config](), "", "") }

// DescribeDesk is Describe for `market facilitator`.
func DescribeDesk() []Variable { return variables(reflect.TypeFor[Desk](), "", "") }

func variables(t reflect.Type, prefix, whose string) []Variable {
	var all []Variable
	for i := range t.NumField() {
		f := t.Field(i)
		name, tagged := f.Tag.Lookup("env")
		if !tagged {
			if f.Type.Kind() == reflect.Struct {
				all = append(all, variables(f.Type, prefix+f.Tag.Get("envPrefix"), f.Tag.Get("meaning"))...)
			}
			continue
		}
		if name == "-" { // read from a file
			continue
		}
		v := Variable{
			Name:    prefix + name,
			Default: f.Tag.Get("envDefault"),
			Meaning: f.Tag.Get("meaning"),
			expect:  f.Tag.Get("expect"),
			field:   f.Name,
			secret:  f.Type == reflect.TypeFor[Secret](),
		}
		if shown := f.Tag.Get("shown"); shown != "" {
			v.Default = shown
		}
		if whose != "" {
			v.Meaning = whose + ": " + v.Meaning
		}
		all = append(all, v)
	}
	return all
}

// ours says whether a variable is meant for this program by its name.
func ours(name string) bool { return strings.HasPrefix(name, "MARKET_") }
