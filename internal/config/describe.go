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

func variables(t reflect.Type, prefix, whose string) []Variable {
	var all []Variable
	for _, f := range reflect.VisibleFields(t) {
		if len(f.Index) > 1 { // comes again with the struct that it is promoted from
			continue
		}
		name, tagged := f.Tag.Lookup("env")
		if !tagged {
			if f.Type.Kind() == reflect.Struct {
				all = append(all, variables(f.Type, prefix+f.Tag.Get("envPrefix"), f.Tag.Get("meaning"))...)
			}
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
			v.Meaning += " of the one that " + whose
		}
		all = append(all, v)
	}
	return all
}

// ours says whether a variable is meant for this program by its name.
func ours(name string) bool { return strings.HasPrefix(name, "MARKET_") }
