package store_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the pages leave to their reader.
const snippetNames = `package snippets

import (
	"context"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

var (
	ctx                                                   context.Context
	image, imageRef, pulledRef, handler                   string
	id, uid, url, tokenOfURL                              string
	cmd                                                   []string
	listed                                                []waybill.ListedImage
	used                                                  waybill.PulledWith
	fetchCredentials                                      func() (store.PodCredentials, error)
	secrets, accounts                                     []waybill.CredentialName
	s                                                     *store.Store
)
`

// The Go of the pages compiles: each block is a function's body.
func TestSnippets(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	declared := regexp.MustCompile(`(?m)^(\w+), err :=|^(owner) :=`)
	scratch := t.TempDir()
	files := []string{filepath.Join(scratch, "names.go")}
	must(t, os.WriteFile(files[0], []byte(snippetNames), 0o600))
	for _, page := range []string{"../README.md", "../../../docs/linking.md"} {
		text, err := os.ReadFile(page)
		must(t, err)
		blocks := block.FindAllSubmatchIndex(text, -1)
		errorIf(t, len(blocks) == 0, "%s has no Go", page)
		for _, at := range blocks {
			body := string(text[at[2]:at[3]])
			if strings.Contains(body, "\npackage main\n") { // a whole program
				file := filepath.Join(t.TempDir(), "main.go")
				must(t, os.WriteFile(file, []byte(body), 0o600))
				out, err := exec.Command("go", "vet", "-race", file).CombinedOutput()
				errorIf(t, err != nil, "%s: %v\n%s", page, err, out)
				continue
			}
			var source strings.Builder
			source.WriteString("package snippets\n\n")
			for use, path := range map[string]string{"waybill.": "waybill.dev/go", "store.": "waybill.dev/go/store", "errors.": "errors"} {
				if strings.Contains(body, use) {
					fmt.Fprintf(&source, "import %q\n", path)
				}
			}
			line := strings.Count(string(text[:at[2]]), "\n") + 1
			fmt.Fprintf(&source, "\nfunc _() error {\n//line %s:%d\n%s", filepath.Base(page), line, body)
			for _, name := range declared.FindAllStringSubmatch(body, -1) {
				fmt.Fprintf(&source, "_ = %s\n", name[1]+name[2])
			}
			source.WriteString("return err\n}\n")
			file := filepath.Join(scratch, fmt.Sprintf("block%d.go", len(files)))
			must(t, os.WriteFile(file, []byte(source.String()), 0o600))
			files = append(files, file)
		}
	}
	// With -race, as ./dev test compiles everything else.
	vet := append([]string{"vet", "-race"}, files...)
	out, err := exec.Command("go", vet...).CombinedOutput()
	errorIf(t, err != nil, "%v\n%s", err, out)
}
