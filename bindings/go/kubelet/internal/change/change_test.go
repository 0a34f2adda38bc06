package change

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kubernetes returns the folder of the module that the adapters are built with.
func kubernetes(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// What doc.go shows is what the program puts in; cmd/build's test compiles it.
func TestDocumentationShowsTheChange(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{Imports, Parameter, Result, PullManager, UserNamespaces, UsernsManager, UsernsField, PullIntent, PulledWith} {
		var block strings.Builder
		block.WriteString("\n//\n")
		for line := range strings.Lines(shown + "\n") {
			block.WriteString("//\t" + line)
		}
		block.WriteString("//\n")
		if !strings.Contains(string(text), block.String()) {
			t.Errorf("doc.go does not show%s", block.String())
		}
	}
}

func TestSourcesChange(t *testing.T) {
	module := kubernetes(t)
	changed, err := Sources(module)
	if err != nil {
		t.Fatal(err)
	}
	for path, gone := range map[string][]string{
		RuntimeManager: {"NewFSPullRecordsAccessor", `"k8s.io/utils/ptr"`},
		MainKubelet:    {"userns.MakeUserNsManager", `"k8s.io/kubernetes/pkg/kubelet/userns"`},
		ImageManager:   {"m.imagePullManager.RecordPullIntent("},
	} {
		for _, text := range gone {
			if strings.Contains(string(changed[path]), text) {
				t.Errorf("%s still has %s", path, text)
			}
		}
	}
	// A second time, as of sources that somebody changed by hand.
	again := scratchModule(t, module)
	for path, text := range changed {
		overwrite(t, again, path, string(text))
	}
	if _, err := Sources(again); err == nil || !strings.Contains(err.Error(), "imports waybill.dev/go") {
		t.Errorf("changed twice: %v", err)
	}
}

// scratchModule copies the files that change.
func scratchModule(t *testing.T, module string) string {
	t.Helper()
	copied := t.TempDir()
	for _, path := range []string{RuntimeManager, MainKubelet, ImageManager} {
		text, err := os.ReadFile(filepath.Join(module, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(copied, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		overwrite(t, copied, path, string(text))
	}
	return copied
}

func overwrite(t *testing.T, module, path, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(module, path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A later release that is otherwise made is refused, and the error says what is missing where.
func TestUnexpectedSourcesAreRefused(t *testing.T) {
	module := kubernetes(t)
	for name, test := range map[string]struct{ path, from, to, want string }{
		"not Go": {RuntimeManager, "package kuberuntime", "packet kuberuntime", "expected 'package'"},
		"no constructor": {RuntimeManager, "func NewKubeGenericRuntimeManager(", "func NewRuntimeManager(",
			"expected the function NewKubeGenericRuntimeManager"},
		"another parameter": {RuntimeManager, "rootDirectory string,", "root string,", "expected the parameter rootDirectory"},
		"another result": {RuntimeManager, "(KubeGenericRuntime, []images.PostImageGCHook, error)", "(KubeGenericRuntime, error)",
			"expected the results (KubeGenericRuntime, []images.PostImageGCHook, error)"},
		"the gate went": {RuntimeManager, "if utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages)", "if true",
			"expected one branch under the feature gate"},
		"the branch does more": {RuntimeManager, "imageGCHooks = append(imageGCHooks, imagePullManager.PruneUnknownRecords)",
			"imagePullManager.Start()\nimageGCHooks = append(imageGCHooks, imagePullManager.PruneUnknownRecords)", "it calls imagepullmanager"},
		"another hook": {RuntimeManager, "append(imageGCHooks, imagePullManager.PruneUnknownRecords)",
			"append(imageGCHooks, imagePullManager.Prune)", "adding imagePullManager.PruneUnknownRecords"},
		"an early success": {RuntimeManager, "return nil, nil, ErrVersionNotSupported", "return nil, nil, nil", "succeeds before"},
		"another caller": {MainKubelet, "runtime, postImageGCHooks, err := kuberuntime.NewKubeGenericRuntimeManager(",
			"runtime, err := kuberuntime.NewKubeGenericRuntimeManager(", "expected one call of kuberuntime.NewKubeGenericRuntimeManager"},
		"another length": {MainKubelet, "usernsIDsPerPod = kubeCfg.UserNamespaces.IDsPerPod", "usernsIDsPerPod = nil", "expected\nvar usernsIDsPerPod"},
		"another manager": {MainKubelet, "userns.MakeUserNsManager(logger, klet, usernsIDsPerPod)", "userns.MakeUserNsManager(ctx, klet, usernsIDsPerPod)",
			"expected klet.usernsManager, err = userns.MakeUserNsManager(logger, klet, usernsIDsPerPod)"},
		"no pulls": {ImageManager, "func (m *imageManager) pullImage(", "func (m *imageManager) pull(", "expected the method pullImage of *imageManager"},
		"another intent": {ImageManager, "m.imagePullManager.RecordPullIntent(logger, image)", "m.imagePullManager.RecordPullIntent(logger, imgSpec.Image)",
			"expected if err := m.imagePullManager.RecordPullIntent(…, image); err != nil"},
		"no intent": {ImageManager, "m.imagePullManager.RecordPullIntent(logger, image)", "record(logger, image)", "expected one if with a call of"},
		"another end": {ImageManager, "m.imagePullManager.RecordImagePullFailed(ctx, image)", "m.imagePullManager.RecordImagePullFailed(context.Background(), image)",
			"expected one call of m.imagePullManager.RecordImagePullFailed(ctx, image"},
		"another field": {MainKubelet, "usernsManager *userns.UsernsManager", "usernsManager userns.Manager", "expected one field usernsManager"},
	} {
		t.Run(name, func(t *testing.T) {
			copied := scratchModule(t, module)
			text, err := os.ReadFile(filepath.Join(copied, test.path))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), test.from) {
				t.Fatalf("the sources have no %q", test.from)
			}
			overwrite(t, copied, test.path, strings.Replace(string(text), test.from, test.to, 1))
			_, err = Sources(copied)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.path) {
				t.Errorf("got %v, want %q of %s", err, test.want, test.path)
			}
		})
	}
	if _, err := Sources(t.TempDir()); err == nil {
		t.Error("changed a module that is empty")
	}
}
