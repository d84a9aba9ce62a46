package catalog

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"market/internal/refusal"
)

const (
	schemaBytesMax = 32 << 10
	patternLenMax  = 256

	// schemaStepsMax bounds one validation: how often a subschema may be applied to a value, long strings and lists counting more. A
	// schema of a hundred bytes can double its work with each level of $ref, and nothing can interrupt the library from outside.
	schemaStepsMax = 300_000
	stepBytes      = 8

	problemsMax       = 10
	problemLenMax     = 200
	schemaResourceURL = "https://listing.invalid/schema" // hierarchical, so that a relative reference leads elsewhere and is refused
)

// A schema is a compiled JSON Schema. It may be used by many goroutines: each takes a compiled copy, because the step count of a
// validation lives in the copy.
type schema struct {
	document any
	copies   sync.Pool
}

type compiledSchema struct {
	*jsonschema.Schema
	steps int // left in the validation that is running
}

// errTooComplex is a validation that took more than schemaStepsMax.
var errTooComplex = errors.New("is too complex to check")

// noLoader refuses every reference out of the document, to files as well as to the network. Standard metaschemas are built in.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("references must stay within the document")
}

// compileSchema compiles a decoded document, draft 2020-12 unless it says otherwise.
func compileSchema(document any) (*schema, error) {
	s := &schema{document: document}
	first, err := s.compile()
	if err != nil {
		return nil, err
	}
	s.copies.Put(first)
	return s, nil
}

func (s *schema) compile() (*compiledSchema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(shortRegexp)
	if err := c.AddResource(schemaResourceURL, s.document); err != nil {
		return nil, fmt.Errorf("add schema: %w", err)
	}
	root, err := c.Compile(schemaResourceURL)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	compiled := &compiledSchema{Schema: root}
	eachSchema(reflect.ValueOf(root), map[*jsonschema.Schema]bool{}, compiled.count)
	return compiled, nil
}

// count makes a schema report each value that it is applied to. Its format check is the one hook that the library calls before it
// goes on to subschemas.
func (c *compiledSchema) count(s *jsonschema.Schema) {
	inner := s.Format
	name := ""
	if inner != nil {
		name = inner.Name
	}
	s.Format = &jsonschema.Format{Name: name, Validate: func(v any) error {
		c.steps -= stepsOf(v)
		if c.steps < 0 {
			panic(errTooComplex) // caught in check; an error would only make this one branch fail, and the next would go on
		}
		if inner != nil {
			return inner.Validate(v)
		}
		return nil
	}}
}

func stepsOf(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + len(v)/stepBytes
	case []any:
		return 1 + len(v)/stepBytes
	}
	return 1
}

// eachSchema visits every schema that can be reached from v through exported fields.
func eachSchema(v reflect.Value, seen map[*jsonschema.Schema]bool, visit func(*jsonschema.Schema)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		if s, ok := v.Interface().(*jsonschema.Schema); ok {
			if seen[s] {
				return
			}
			seen[s] = true
			defer visit(s)
		}
		eachSchema(v.Elem(), seen, visit)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachSchema(v.Field(i), seen, visit)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			eachSchema(key, seen, visit)
			eachSchema(v.MapIndex(key), seen, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachSchema(v.Index(i), seen, visit)
		}
	}
}

// check validates a decoded value. A *jsonschema.ValidationError says what does not fit; errTooComplex that it took too long to find
// out.
func (s *schema) check(v any) (err error) {
	c, ok := s.copies.Get().(*compiledSchema)
	if !ok {
		if c, err = s.compile(); err != nil {
			return err
		}
	}
	defer s.copies.Put(c)
	defer func() {
		if r := recover(); r != nil {
			if r != any(errTooComplex) {
				panic(r)
			}
			err = errTooComplex
		}
	}()
	c.steps = schemaStepsMax
	return c.Validate(v)
}

// problemsOf lists what a validation found, at most problemsMax of it, each by the JSON pointer of the member below prefix.
func problemsOf(err error, prefix string) []refusal.Field {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []refusal.Field{{Name: prefix, Message: shorten(err.Error(), problemLenMax)}}
	}
	var fields []refusal.Field
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(fields) == problemsMax {
			return
		}
		if len(e.Causes) == 0 {
			unit := e.BasicOutput()
			fields = append(fields, refusal.Field{
				Name:    shorten(prefix+unit.InstanceLocation, problemLenMax),
				Message: shorten(unit.Error.String(), problemLenMax),
			})
			return
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(invalid)
	return fields
}

// schemaProblem says why a schema did not compile, without our made-up resource name.
func schemaProblem(err error) string {
	text := strings.ReplaceAll(err.Error(), schemaResourceURL, "")
	return shorten(strings.Join(strings.Fields(text), " "), problemLenMax)
}
