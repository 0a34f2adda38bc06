package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"waybill.dev/go/kubelet/internal/change"
)

// check type-checks what is changed, from its sources: in seconds, where building takes minutes. Of the
// packages that are not changed it skips the functions' bodies.
func (b *builder) check() error {
	out, err := b.run(b.module, append([]string{"go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,CgoFiles,ImportMap"},
		append(b.flags(), "k8s.io/kubernetes/cmd/kubelet")...)...)
	if err != nil {
		return fmt.Errorf("list the kubelet's packages: %w", err)
	}
	changed := map[string]bool{}
	for path := range change.Replacements {
		changed[filepath.Join(b.module, filepath.Dir(path))] = true
	}
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	set := token.NewFileSet()
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		ours := changed[p.Dir] || p.Dir == filepath.Join(b.scratch, "adapters")
		files, err := b.parse(set, &p)
		if err != nil {
			return err
		}
		var wrong []error
		config := types.Config{
			Importer:         importer{known, p.ImportMap},
			IgnoreFuncBodies: !ours,
			FakeImportC:      true,
			Sizes:            types.SizesFor("gc", runtime.GOARCH),
			// Files with assembly or cgo can't be judged so; the compiler did that where they come from.
			Error: func(err error) { wrong = append(wrong, err) },
		}
		known[p.ImportPath], _ = config.Check(p.ImportPath, set, files, nil)
		if ours && len(wrong) > 0 {
			return fmt.Errorf("the changed sources do not compile: %w", errors.Join(wrong...))
		}
		delete(changed, p.Dir)
	}
	if len(changed) > 0 {
		return fmt.Errorf("the kubelet does not use the changed packages: %v", changed)
	}
	return nil
}

type listed struct {
	ImportPath, Dir   string
	GoFiles, CgoFiles []string
	ImportMap         map[string]string
}

func (b *builder) parse(set *token.FileSet, p *listed) ([]*ast.File, error) {
	names := slices.Concat(p.GoFiles, p.CgoFiles)
	files, wrong := make([]*ast.File, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			path := filepath.Join(p.Dir, name)
			if from := b.overlay[path]; from != "" {
				path = from
			}
			files[i], wrong[i] = parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		})
	}
	all.Wait()
	return files, errors.Join(wrong...)
}

type importer struct {
	known map[string]*types.Package
	names map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if renamed := i.names[path]; renamed != "" {
		path = renamed
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not listed", path)
}
