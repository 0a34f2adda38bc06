// Package change puts waybill into the sources of a kubelet. It knows the shape of the sources that it
// changes, and refuses all others.
package change

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files that change, below the module k8s.io/kubernetes.
const (
	RuntimeManager = "pkg/kubelet/kuberuntime/kuberuntime_manager.go"
	MainKubelet    = "pkg/kubelet/kubelet.go"
	ImageManager   = "pkg/kubelet/images/image_manager.go"
)

// The code that is put into the sources, as doc.go shows it.
const (
	// Imports, of each file those that it needs.
	Imports = `waybill "waybill.dev/go"
waybillkubelet "waybill.dev/go/kubelet"
waybillstore "waybill.dev/go/store"`

	// Parameter is the last one of NewKubeGenericRuntimeManager; Result stands before its error.
	Parameter = `userNamespaces waybill.Pool`
	Result    = `*waybillstore.Store`

	// PullManager replaces the branch under the feature gate KubeletEnsureSecretPulledImages.
	PullManager = `waybillStore, err := waybillkubelet.OpenStore(ctx, waybillkubelet.Setup{
	Directory:          filepath.Join(rootDirectory, "waybill"),
	KubeletDirectory:   rootDirectory,
	VerificationPolicy: kubeletconfiginternal.ImagePullCredentialsVerificationPolicy(imagePullsCredentialVerificationPolicy),
	Allowlist:          preloadedImagesCredentialVerificationWhitelist,
	ImageService:       kubeRuntimeManager,
	Settings:           waybill.Settings{Pool: userNamespaces, ShortNamesAnywhere: waybillkubelet.ShortNamesAnywhere(kubeRuntimeManager.runtimeName)},
})
if err != nil {
	return nil, nil, nil, err
}
if utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
	imagePullManager, err = waybillkubelet.NewImagePullManager(waybillStore, kubeRuntimeManager,
		waybillkubelet.CheckersOf(kubeRuntimeManager.runtimeName))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("failed to create image pull manager: %w", err)
	}
	imageGCHooks = append(imageGCHooks, imagePullManager.PruneUnknownRecords)
}`

	// UserNamespaces stands before the call of NewKubeGenericRuntimeManager. Its first lines are the
	// kubelet's own, moved up.
	UserNamespaces = `var usernsIDsPerPod *int64
if kubeCfg.UserNamespaces != nil {
	usernsIDsPerPod = kubeCfg.UserNamespaces.IDsPerPod
}
userNamespaces, err := waybillkubelet.UserNamespacesOf(logger, klet, usernsIDsPerPod)
if err != nil {
	return nil, err
}`

	// UsernsManager replaces the call of userns.MakeUserNsManager, UsernsField the type of the field.
	UsernsManager = `klet.usernsManager, err = waybillkubelet.MakeUsernsManager(logger, waybillStore, klet)`
	UsernsField   = `usernsManager waybillkubelet.UserNamespaceManager`

	// PullIntent replaces the statement in which pullImage records the intent. The end that is
	// recorded with this context later is this pull's.
	PullIntent = `ctx, err = waybillkubelet.RecordPullIntent(ctx, m.imagePullManager, image)`

	// PulledWith stands behind the statement in which pullImage gets the pull's result.
	PulledWith = `ctx = waybillkubelet.WithPulledCredential(ctx, m.imagePullManager, imgSpec.RuntimeHandler, imagePullResult.credentialsUsed)`
)

// Sources returns the changed files of the module k8s.io/kubernetes in `module`, by their paths below it.
func Sources(module string) (map[string][]byte, error) {
	changed := map[string][]byte{}
	for path, change := range map[string]func(*source) error{
		RuntimeManager: changeRuntimeManager,
		MainKubelet:    changeMainKubelet,
		ImageManager:   changeImageManager,
	} {
		text, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(path)))
		if err != nil {
			return nil, fmt.Errorf("read the kubelet's sources: %w", err)
		}
		if changed[path], err = apply(path, text, change); err != nil {
			return nil, fmt.Errorf("%s is not as expected, and was not changed: %w", filepath.Join(module, path), err)
		}
	}
	return changed, nil
}

func apply(path string, text []byte, change func(*source) error) ([]byte, error) {
	s, err := parse(path, text)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{"waybill.dev/go", "waybill.dev/go/kubelet", "waybill.dev/go/store"} {
		if s.importOf(path) != nil {
			return nil, fmt.Errorf("it imports %s already", path)
		}
	}
	if err := change(s); err != nil {
		return nil, err
	}
	if err := s.addImports(); err != nil {
		return nil, err
	}
	if s, err = parse(path, s.edited()); err != nil {
		return nil, fmt.Errorf("after the change: %w", err)
	}
	s.dropUnusedImports()
	return format.Source(s.edited())
}

// changeRuntimeManager changes NewKubeGenericRuntimeManager.
func changeRuntimeManager(s *source) error {
	function, err := s.function("NewKubeGenericRuntimeManager")
	if err != nil {
		return err
	}
	if err := s.hasImports("path/filepath", "fmt", "k8s.io/kubernetes/pkg/features", "k8s.io/apiserver/pkg/util/feature",
		"k8s.io/kubernetes/pkg/kubelet/apis/config"); err != nil {
		return err
	}
	for _, name := range []string{"ctx", "rootDirectory", "imagePullsCredentialVerificationPolicy", "preloadedImagesCredentialVerificationWhitelist"} {
		if !slices.Contains(namesOf(function.Type.Params), name) {
			return fmt.Errorf("expected the parameter %s of NewKubeGenericRuntimeManager", name)
		}
	}
	results := function.Type.Results
	if results == nil || s.text(results) != "(KubeGenericRuntime, []images.PostImageGCHook, error)" {
		return fmt.Errorf("expected the results (KubeGenericRuntime, []images.PostImageGCHook, error) of NewKubeGenericRuntimeManager")
	}
	s.insert(function.Type.Params.Closing, Parameter+",\n")
	s.insert(results.List[2].Pos(), Result+", ")

	branches := find(function.Body, func(n *ast.IfStmt) bool {
		return s.text(n.Cond) == "utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages)"
	})
	if len(branches) != 1 || branches[0].Else != nil || branches[0].Init != nil || !slices.Contains(function.Body.List, ast.Stmt(branches[0])) {
		return fmt.Errorf("expected one branch under the feature gate KubeletEnsureSecretPulledImages in NewKubeGenericRuntimeManager, without an else, found %d", len(branches))
	}
	branch := branches[0]
	// All that the branch does. Code that a later release adds must not be lost unnoticed.
	expected := "imagepullmanager.NewImagePullCredentialVerificationPolicy kubeletconfiginternal.ImagePullCredentialsVerificationPolicy " +
		"imagepullmanager.NewFSPullRecordsAccessor fmt.Errorf ptr.Deref max imagepullmanager.NewCachedPullRecordsAccessor " +
		"imagepullmanager.NewImagePullManager fmt.Errorf append"
	var calls []string
	for _, call := range find(branch.Body, func(*ast.CallExpr) bool { return true }) {
		calls = append(calls, s.text(call.Fun))
	}
	if found := strings.Join(calls, " "); found != expected {
		return fmt.Errorf("expected that the branch under KubeletEnsureSecretPulledImages calls %s; it calls %s", expected, found)
	}
	if got := s.text(branch.Body.List[len(branch.Body.List)-1]); got != "imageGCHooks = append(imageGCHooks, imagePullManager.PruneUnknownRecords)" {
		return fmt.Errorf("expected that the branch under KubeletEnsureSecretPulledImages ends by adding imagePullManager.PruneUnknownRecords to imageGCHooks; it ends with %s", got)
	}
	s.replace(branch, PullManager)

	for _, statement := range returnsOf(function.Body) {
		if statement.Pos() > branch.Pos() && statement.End() < branch.End() {
			continue
		}
		if len(statement.Results) != 3 {
			return fmt.Errorf("%s: expected three results, found %s", s.at(statement), s.text(statement))
		}
		last, store := statement.Results[2], "nil"
		if s.text(last) == "nil" {
			if statement.Pos() < branch.Pos() {
				return fmt.Errorf("%s: NewKubeGenericRuntimeManager succeeds before the pull manager is made", s.at(statement))
			}
			store = "waybillStore"
		}
		s.insert(last.Pos(), store+", ")
	}
	return nil
}

// changeMainKubelet changes NewMainKubelet and the struct Kubelet.
func changeMainKubelet(s *source) error {
	function, err := s.function("NewMainKubelet")
	if err != nil {
		return err
	}
	calls := find(function.Body, func(n *ast.AssignStmt) bool {
		return len(n.Rhs) == 1 && s.callOf(n.Rhs[0]) == "kuberuntime.NewKubeGenericRuntimeManager"
	})
	if len(calls) != 1 || len(calls[0].Lhs) != 3 || !slices.Contains(function.Body.List, ast.Stmt(calls[0])) {
		return errors.New("expected one call of kuberuntime.NewKubeGenericRuntimeManager with three results in NewMainKubelet")
	}
	call := calls[0]
	for _, name := range []string{"logger", "klet"} {
		made := find(function.Body, func(n *ast.AssignStmt) bool { return n.Tok == token.DEFINE && s.text(n.Lhs[0]) == name })
		if len(made) == 0 || made[0].Pos() > call.Pos() {
			return fmt.Errorf("expected that NewMainKubelet has %s before it calls kuberuntime.NewKubeGenericRuntimeManager", name)
		}
	}
	s.insert(call.Pos(), UserNamespaces+"\n\n")
	s.insert(call.Lhs[2].Pos(), "waybillStore, ")
	s.insert(call.Rhs[0].(*ast.CallExpr).Rparen, "userNamespaces,\n")

	// The kubelet's own lines move up with it.
	length, _, _ := strings.Cut(UserNamespaces, "\nuserNamespaces, err")
	made := slices.IndexFunc(function.Body.List, func(n ast.Stmt) bool {
		assign, ok := n.(*ast.AssignStmt)
		return ok && len(assign.Rhs) == 1 && s.callOf(assign.Rhs[0]) == "userns.MakeUserNsManager"
	})
	if made < 2 {
		return errors.New("expected a call of userns.MakeUserNsManager in NewMainKubelet, and usernsIDsPerPod before it")
	}
	make := function.Body.List[made]
	if got := s.text(make); got != "klet.usernsManager, err = userns.MakeUserNsManager(logger, klet, usernsIDsPerPod)" || make.Pos() < call.Pos() {
		return fmt.Errorf("%s: expected klet.usernsManager, err = userns.MakeUserNsManager(logger, klet, usernsIDsPerPod), found %s", s.at(make), got)
	}
	moved := function.Body.List[made-2 : made]
	if got := s.text(moved[0]) + "\n" + s.text(moved[1]); unindented(got) != unindented(length) {
		return fmt.Errorf("%s: expected\n%s\nfound\n%s", s.at(moved[0]), length, got)
	}
	s.replace(moved[0], "")
	s.replace(moved[1], "")
	s.replace(make, UsernsManager)

	fields := find(s.file, func(n *ast.Field) bool { return s.text(n.Type) == "*userns.UsernsManager" })
	if len(fields) != 1 || len(fields[0].Names) != 1 || fields[0].Names[0].Name != "usernsManager" {
		return errors.New("expected one field usernsManager of the type *userns.UsernsManager")
	}
	s.replace(fields[0], UsernsField)
	return nil
}

// changeImageManager changes the method pullImage.
func changeImageManager(s *source) error {
	function, err := s.method("pullImage", "*imageManager")
	if err != nil {
		return err
	}
	if !slices.Contains(namesOf(function.Type.Params), "ctx") || function.Type.Results == nil || !slices.Contains(namesOf(function.Type.Results), "err") {
		return errors.New("expected the parameter ctx and the result err of pullImage")
	}
	branches := find(function.Body, func(n *ast.IfStmt) bool {
		assign, ok := n.Init.(*ast.AssignStmt)
		return ok && len(assign.Rhs) == 1 && s.callOf(assign.Rhs[0]) == "m.imagePullManager.RecordPullIntent"
	})
	if len(branches) != 1 {
		return fmt.Errorf("expected one if with a call of m.imagePullManager.RecordPullIntent in pullImage, found %d", len(branches))
	}
	branch := branches[0]
	intent := branch.Init.(*ast.AssignStmt)
	call := intent.Rhs[0].(*ast.CallExpr)
	if got := s.text(branch); !strings.HasPrefix(got, "if err := ") || s.text(branch.Cond) != "err != nil" || s.text(call.Args[len(call.Args)-1]) != "image" {
		return fmt.Errorf("%s: expected if err := m.imagePullManager.RecordPullIntent(…, image); err != nil, found %s", s.at(branch), got)
	}
	// Both ends must be recorded later, with the variable that changes.
	for _, name := range []string{"RecordImagePulled", "RecordImagePullFailed"} {
		ends := find(function.Body, func(n *ast.CallExpr) bool { return s.text(n.Fun) == "m.imagePullManager."+name })
		if len(ends) != 1 || ends[0].Pos() < branch.End() || len(ends[0].Args) < 2 || s.text(ends[0].Args[0]) != "ctx" || s.text(ends[0].Args[1]) != "image" {
			return fmt.Errorf("expected one call of m.imagePullManager.%s(ctx, image, …) in pullImage, after that of RecordPullIntent", name)
		}
	}
	results := find(function.Body, func(n *ast.AssignStmt) bool { return s.text(n) == "imagePullResult := <-pullChan" })
	if len(results) != 1 || results[0].Pos() < branch.End() || !slices.Contains(namesOf(function.Type.Params), "imgSpec") {
		return errors.New("expected imagePullResult := <-pullChan and the parameter imgSpec in pullImage")
	}
	s.insert(results[0].End(), "\n"+PulledWith)
	s.replace(intent, PullIntent)
	// Up to 1.36 nothing uses the logger then.
	loggers := find(function.Body, func(n *ast.Ident) bool { return n.Name == "logger" })
	first, ok := function.Body.List[0].(*ast.AssignStmt)
	if ok && len(loggers) == 2 && s.text(first) == "logger := klog.FromContext(ctx)" && s.text(call.Args[0]) == "logger" {
		s.replace(first, "")
	}
	return nil
}

// source is a file that is being changed.
type source struct {
	bytes []byte
	set   *token.FileSet
	file  *ast.File
	edits []edit
}

type edit struct {
	from, to int
	with     string
}

func parse(path string, text []byte) (*source, error) {
	s := &source{bytes: text, set: token.NewFileSet()}
	var err error
	s.file, err = parser.ParseFile(s.set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	return s, err
}

func (s *source) offset(at token.Pos) int { return s.set.Position(at).Offset }
func (s *source) text(n ast.Node) string  { return string(s.bytes[s.offset(n.Pos()):s.offset(n.End())]) }
func (s *source) at(n ast.Node) string    { return "line " + strconv.Itoa(s.set.Position(n.Pos()).Line) }
func (s *source) replace(n ast.Node, with string) {
	s.edits = append(s.edits, edit{s.offset(n.Pos()), s.offset(n.End()), with})
}
func (s *source) insert(at token.Pos, text string) {
	s.edits = append(s.edits, edit{s.offset(at), s.offset(at), text})
}

func (s *source) edited() []byte {
	slices.SortStableFunc(s.edits, func(a, b edit) int { return a.from - b.from })
	var text []byte
	done := 0
	for _, e := range s.edits {
		text = append(append(text, s.bytes[done:e.from]...), e.with...)
		done = e.to
	}
	return append(text, s.bytes[done:]...)
}

func (s *source) function(name string) (*ast.FuncDecl, error) {
	for _, declaration := range s.file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name && f.Body != nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("expected the function %s", name)
}

func (s *source) method(name, of string) (*ast.FuncDecl, error) {
	for _, declaration := range s.file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == name && f.Body != nil && s.text(f.Recv.List[0].Type) == of {
			return f, nil
		}
	}
	return nil, fmt.Errorf("expected the method %s of %s", name, of)
}

// callOf returns the name of the called function; empty if the node is not a call.
func (s *source) callOf(n ast.Expr) string {
	if call, ok := n.(*ast.CallExpr); ok {
		return s.text(call.Fun)
	}
	return ""
}

func (s *source) importOf(path string) *ast.ImportSpec {
	for _, spec := range s.file.Imports {
		if spec.Path.Value == strconv.Quote(path) {
			return spec
		}
	}
	return nil
}

func (s *source) hasImports(paths ...string) error {
	for _, path := range paths {
		if s.importOf(path) == nil {
			return fmt.Errorf("expected an import of %s", path)
		}
	}
	return nil
}

func (s *source) addImports() error {
	for _, declaration := range s.file.Decls {
		if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.IMPORT && d.Rparen.IsValid() {
			lines := strings.Split(Imports, "\n")
			for _, line := range lines {
				name, _, _ := strings.Cut(line, " ")
				if strings.Contains(string(s.edited()), name+".") {
					s.insert(d.Rparen, line+"\n")
				}
			}
			return nil
		}
	}
	return errors.New("expected a list of imports")
}

// dropUnusedImports drops the imports that the change left without a use.
func (s *source) dropUnusedImports() {
	used := map[string]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
	for _, spec := range s.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		// Only these lose users; the name of another may not be the end of its path.
		if path != "k8s.io/utils/ptr" && path != "k8s.io/kubernetes/pkg/kubelet/userns" {
			continue
		}
		if name := filepath.Base(path); spec.Name == nil && !used[name] {
			from, to := s.offset(spec.Pos()), s.offset(spec.End())
			from -= len(s.bytes[:from]) - 1 - bytes.LastIndexByte(s.bytes[:from], '\n')
			s.edits = append(s.edits, edit{from, to + 1, ""}) // the whole line
		}
	}
}

func namesOf(fields *ast.FieldList) []string {
	var names []string
	for _, field := range fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

func find[N ast.Node](in ast.Node, wanted func(N) bool) []N {
	var found []N
	ast.Inspect(in, func(n ast.Node) bool {
		if n, ok := n.(N); ok && wanted(n) {
			found = append(found, n)
		}
		return true
	})
	return found
}

// returnsOf leaves out those of functions in the function.
func returnsOf(body *ast.BlockStmt) []*ast.ReturnStmt {
	var found []*ast.ReturnStmt
	ast.Inspect(body, func(n ast.Node) bool {
		if statement, ok := n.(*ast.ReturnStmt); ok {
			found = append(found, statement)
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return found
}

func unindented(text string) string { return strings.Join(strings.Fields(text), " ") }
