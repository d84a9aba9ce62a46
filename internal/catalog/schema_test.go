package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompileSchema_ReadsNoFileEvenIfItIsASchema(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		schema string
		good   bool
	}{
		"a reference to a file":              {`{"$ref":"file://` + file + `"}`, false},
		"a reference to a path":              {`{"$ref":"` + file + `"}`, false},
		"a base that is a file":              {`{"$id":"file://` + filepath.Dir(file) + `/x","$ref":"schema.json"}`, false},
		"a metaschema in a file":             {`{"$schema":"file://` + file + `"}`, false},
		"a reference within the document":    {`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`, true},
		"a reference to an anchor within it": {`{"$ref":"#a","$defs":{"a":{"$anchor":"a","type":"object"}}}`, true},
		"a draft that is built in":           {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, true},
	} {
		document, err := decodeValue([]byte(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		_, err = compileSchema(document)
		if (err == nil) != tt.good {
			t.Errorf("%s: error = %v, want good = %v", name, err, tt.good)
		}
		if err != nil && strings.Contains(schemaProblem(err), schemaResourceURL) {
			t.Errorf("%s: the text has our made-up name: %s", name, schemaProblem(err))
		}
	}
}
