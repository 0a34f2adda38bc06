package change

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// copied has the files of the module that the adapters are built with; cmd/build's test compiles what they
// become.
func copied(t *testing.T) (module string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	module = t.TempDir()
	for path := range Replacements {
		write(t, module, path, read(t, strings.TrimSpace(string(out)), path))
	}
	return module
}

func read(t *testing.T, module, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(module, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, module, path, text string) {
	t.Helper()
	path = filepath.Join(module, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A release that is made otherwise at any of the places is refused, and the error says what is missing where.
func TestUnexpectedSourcesAreRefused(t *testing.T) {
	module := copied(t)
	refused := func(what, path, text string) {
		t.Helper()
		_, err := Sources(module)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s of %s: %v; the text is %q", what, path, err, text)
		}
	}
	changed, err := Sources(module)
	if err != nil {
		t.Fatal(err)
	}
	for path, replacements := range Replacements {
		whole := read(t, module, path)
		for _, r := range replacements {
			old := strings.NewReplacer("«", "", "»", "").Replace(r.Old)
			for what, damaged := range map[string]string{
				"another": strings.TrimSuffix(old, "\n") + " // waits\n",
				"none":    "",
				"two":     old + old,
			} {
				write(t, module, path, strings.Replace(whole, old, damaged, 1))
				refused(what, path, old)
			}
		}
		write(t, module, path, string(changed[path]))
		refused("changed twice", path, "expected once")
		write(t, module, path, whole)
	}
	if _, err := Sources(t.TempDir()); err == nil {
		t.Error("changed a module that is empty")
	}
}
