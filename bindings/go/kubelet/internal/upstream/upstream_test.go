// Package upstream plays the kubelet's own table tests on waybill. It takes them from the module
// k8s.io/kubernetes, and changes what is not the tables by a program; nothing of them is kept here.
package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	// The cases of the five tables of image_pull_manager_test.go, and the answers after each of the five
	// starts among them.
	tablesCount = 47 + 5
	imagesCount = 114 // cases, and tests without cases, of image_manager_test.go
)

// Why a case differs.
const (
	// Under both rules.
	mocksLie = "the mock forgets what a pull proved, and wants one each time; waybill records it"
	// Under the closed rules.
	pullStaysOpen   = "a pull that a restart cut off may still bring its image: its intent stays as a pull of unknown outcome, and needs no record"
	noNames         = "an image that the runtime lists without a name that means anything gets a record without credentials"
	emptyList       = "an empty list of images changes nothing: a runtime that starts up lists none either"
	renewed         = "a pull renews the time of what it proved, so that proofs can age"
	stayAndNoNames  = pullStaysOpen + "; " + noNames
	initialize      = "TestInitialize/"
	afterInitialize = "TestInitializeCloses/"
)

// The cases that differ, by rules and name. Any other that differs fails, and one of these that does not.
var (
	tablesDifferences = map[string]map[string]string{"kubelet": {}, "strict": {
		initialize + "no_pulling/pulled_records":                                                 noNames,
		initialize + "only_pulled_records":                                                       noNames,
		initialize + "pulling_intent_that_matches_an_existing_image_-_a_pull_record_matches":     stayAndNoNames,
		initialize + "pulling_intent_that_matches_an_existing_image_-_no_matching_pulled_record": stayAndNoNames,
		initialize + "multiple_pulling_intents_that_match_existing_images":                       stayAndNoNames,
		"TestPruneUnknownRecords/remove_all_records_on_empty_list_from_the_GC":                   emptyList,
		"TestRecordImagePulled/existing_record_stays_unchanged":                                  renewed,
		"TestRecordImagePulled/duplicate_service_account_should_not_create_duplicates":           renewed,
	}}
	imagesDifferences = map[string]map[string]string{"kubelet": {}, "strict": {}}
)

func init() {
	for _, differences := range imagesDifferences {
		for _, test := range []string{"TestParallelPuller", "TestSerializedPuller", "TestImagePullPrecheck"} {
			for _, unknown := range []string{"unknown_to_image_pull_manager", "unknown_secret_to_image_pull_manager"} {
				differences[test+"/[KubeletEnsureSecretPulledImages]_image_present,_"+unknown+",_pull"] = mocksLie
			}
		}
	}
}

func TestKubeletsTables(t *testing.T) {
	programs := build(t)
	testdata := filepath.Join(programs.kubernetes, "pkg", "kubelet", "images", "pullmanager", "testdata")
	for _, rules := range []string{"kubelet", "strict"} {
		t.Run("image_pull_manager_test/"+rules, func(t *testing.T) {
			play(t, programs.tables, tablesCount, tablesDifferences[rules], "WAYBILL_RULES="+rules, "WAYBILL_TESTDATA="+testdata)
		})
		t.Run("image_manager_test/"+rules, func(t *testing.T) {
			play(t, programs.images, imagesCount, imagesDifferences[rules], "WAYBILL_RULES="+rules)
		})
	}
}

var resultLine = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)

// play runs a test program, and compares what failed with the differences that are known.
func play(t *testing.T, program string, count int, differences map[string]string, env ...string) {
	command := exec.Command(program, "-test.v")
	command.Dir, command.Env = t.TempDir(), append(os.Environ(), env...)
	if _, err := os.Stat("/dev/shm"); err == nil { // some hundred stores
		scratch, err := os.MkdirTemp("/dev/shm", "waybill-upstream-")
		if err == nil {
			defer os.RemoveAll(scratch)
			command.Env = append(command.Env, "TMPDIR="+scratch)
		}
	}
	out, err := command.CombinedOutput()
	results := map[string]string{}
	for _, line := range resultLine.FindAllSubmatch(out, -1) {
		results[string(line[2])] = string(line[1])
	}
	for name := range results { // a test with cases does not count itself
		if above, _, ok := strings.Cut(name, "/"); ok {
			delete(results, above)
		}
	}
	if len(results) != count {
		t.Errorf("%d cases, want %d: the tables are not as expected (%v)\n%s", len(results), count, err, out)
	}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		why, differs := differences[name]
		switch {
		case results[name] != "PASS" && !differs:
			t.Errorf("%s %s\n%s", results[name], name, outputOf(out, name))
		case results[name] == "PASS" && differs:
			t.Errorf("passes, although it should differ (%s): %s", why, name)
		}
	}
	for name := range differences {
		if results[name] == "" {
			t.Errorf("there is no such case: %s", name)
		}
	}
}

// outputOf returns what a case said.
func outputOf(out []byte, name string) string {
	_, said, _ := strings.Cut(string(out), "=== RUN   "+name+"\n")
	said, _, _ = strings.Cut(said, "=== RUN ")
	return said
}

type programs struct {
	kubernetes     string // the module's folder
	tables, images string
}

// build makes two test programs of the module's tests and of this folder's.
func build(t *testing.T) programs {
	t.Helper()
	scratch := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	module := strings.TrimSpace(string(run(t, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")))
	source := filepath.Join(module, "pkg", "kubelet", "images")
	overlay := map[string]string{}
	add := func(path string, text []byte) {
		file := filepath.Join(scratch, strconv.Itoa(len(overlay))+".go")
		write(t, file, text)
		overlay[filepath.Join(here, path)] = file
	}
	add("tables/of_kubelet_test.go", tablesOf(t, filepath.Join(source, "pullmanager", "image_pull_manager_test.go")))
	add("images/image_manager_test.go", imagesTestOf(t, filepath.Join(source, "image_manager_test.go")))
	entries, err := os.ReadDir(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			overlay[filepath.Join(here, "images", name)] = filepath.Join(source, name)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(scratch, "overlay.json"), text)

	// The tests need modules that we do not.
	ours := filepath.Join(here, "..", "..")
	// No workspace goes with -modfile, so what go.work says of this tree is said here.
	t.Setenv("GOWORK", "off")
	replace := fmt.Appendf(nil, "\nreplace waybill.dev/go => %s\n", filepath.Dir(ours))
	write(t, filepath.Join(scratch, "go.mod"), slices.Concat(read(t, filepath.Join(ours, "go.mod")), replace))
	write(t, filepath.Join(scratch, "go.sum"), slices.Concat(read(t, filepath.Join(ours, "go.sum")), read(t, filepath.Join(module, "go.sum"))))
	arguments := []string{"go", "test", "-c", "-mod=mod", "-modfile=" + filepath.Join(scratch, "go.mod"), "-overlay=" + filepath.Join(scratch, "overlay.json"),
		"-tags=waybill_upstream", "-o", scratch + string(filepath.Separator)}
	info, _ := debug.ReadBuildInfo()
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		arguments = append(arguments, "-race") // so that what is compiled already is used
	}
	run(t, append(arguments, "./tables", "./images")...)
	return programs{module, filepath.Join(scratch, "tables.test"), filepath.Join(scratch, "images.test")}
}

// tablesOf makes a package-level table of that in each of five tests.
func tablesOf(t *testing.T, path string) []byte {
	s := parse(t, path)
	var made bytes.Buffer
	made.WriteString("//go:build waybill_upstream\n\npackage tables\n\n" + s.imports() + "\n" +
		"import . \"k8s.io/kubernetes/pkg/kubelet/images/pullmanager\"\n\n")
	for _, name := range []string{"MustAttemptImagePull", "RecordPullIntent", "RecordImagePulled", "initialize", "PruneUnknownRecords"} {
		function := s.function("TestFileBasedImagePullManager_" + name)
		table, ok := s.assigned(function, "tests").(*ast.CompositeLit)
		if !ok {
			t.Fatalf("%s: the table of %s is not a list", path, function.Name.Name)
		}
		list, ok := table.Type.(*ast.ArrayType)
		if !ok {
			t.Fatalf("%s: the table of %s is not a list", path, function.Name.Name)
		}
		name := "casesOf" + strings.ToUpper(name[:1]) + name[1:]
		fmt.Fprintf(&made, "type %s_ struct%s\n\nvar %s = []%s_%s\n\n", name, strings.TrimPrefix(s.text(list.Elt), "struct"), name, name, s.text(table)[len(s.text(list)):])
	}
	images := regexp.MustCompile(`(?s)ImageList: (\[\]container\.Image\{.*\}),\s*\}$`).FindStringSubmatch(
		s.text(s.assigned(s.function("TestFileBasedImagePullManager_initialize"), "imageService")))
	if images == nil {
		t.Fatalf("%s: the images of TestFileBasedImagePullManager_initialize are not as expected", path)
	}
	fmt.Fprintf(&made, "var imagesOfInitialize = %s\n\n%s\n", images[1], s.text(s.function("withImageRecord")))
	return formatted(t, dropUnusedImports(t, made.Bytes()))
}

// imagesTestOf puts waybill in the place of the mock, and what images_test.go has in the place of packages
// that need too many others.
func imagesTestOf(t *testing.T, path string) []byte {
	text := "//go:build waybill_upstream\n\n" + string(read(t, path))
	for _, change := range []struct {
		from, to string
		times    int // 0: at least once
	}{
		{`"k8s.io/kubernetes/test/utils/ktesting"`, "", 1},
		{`"k8s.io/kubernetes/pkg/controller/testutil"`, "", 1},
		{"ktesting.Init(t)", "newContext(t)", 0},
		{"ktesting.TContext", "testContext", 0},
		{"ktesting.TB", "*testing.T", 1},
		{"testutil.NewFakeRecorder()", "newEventRecorder()", 0},
		{"*testutil.FakeRecorder", "*eventRecorder", 1},
		{"NewImageManager(fakeRecorder, keyring, fakeRuntime, pullManager, ", "NewImageManager(fakeRecorder, keyring, fakeRuntime, inPlaceOf(t, pullManager.config), ", 1},
	} {
		times := strings.Count(text, change.from)
		if times == 0 || change.times != 0 && times != change.times {
			t.Fatalf("%s: expected %s %d times, found it %d times", path, change.from, max(change.times, 1), times)
		}
		text = strings.ReplaceAll(text, change.from, change.to)
	}
	return formatted(t, []byte(text))
}

type source struct {
	t      *testing.T
	path   string
	source []byte
	set    *token.FileSet
	file   *ast.File
}

func parse(t *testing.T, path string) *source {
	s := &source{t: t, path: path, source: read(t, path), set: token.NewFileSet()}
	var err error
	if s.file, err = parser.ParseFile(s.set, path, s.source, parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *source) text(n ast.Node) string {
	return string(s.source[s.set.Position(n.Pos()).Offset:s.set.Position(n.End()).Offset])
}

func (s *source) imports() string {
	for _, declaration := range s.file.Decls {
		if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			return s.text(d)
		}
	}
	s.t.Fatalf("%s: no imports", s.path)
	return ""
}

func (s *source) function(name string) *ast.FuncDecl {
	for _, declaration := range s.file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.Name == name {
			return f
		}
	}
	s.t.Fatalf("%s: no function %s", s.path, name)
	return nil
}

// assigned returns what a variable is first set to in a function.
func (s *source) assigned(function *ast.FuncDecl, name string) ast.Expr {
	for _, statement := range function.Body.List {
		if a, ok := statement.(*ast.AssignStmt); ok && a.Tok == token.DEFINE && len(a.Lhs) == 1 && s.text(a.Lhs[0]) == name {
			return a.Rhs[0]
		}
	}
	s.t.Fatalf("%s: %s has no %s", s.path, function.Name.Name, name)
	return nil
}

func dropUnusedImports(t *testing.T, text []byte) []byte {
	lines := strings.Split(string(text), "\n")
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
	for _, spec := range file.Imports {
		name := strings.Trim(spec.Path.Value[strings.LastIndexByte(spec.Path.Value, '/')+1:], `"`)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." || used[name] {
			continue
		}
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return strings.HasSuffix(strings.TrimSpace(line), spec.Path.Value) && !strings.Contains(line, "import .")
		})
	}
	return []byte(strings.Join(lines, "\n"))
}

func formatted(t *testing.T, text []byte) []byte {
	t.Helper()
	made, err := format.Source(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return made
}

func run(t *testing.T, command ...string) []byte {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	var errors bytes.Buffer
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, out, errors.Bytes())
	}
	return out
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
