import { bun } from './bun.ts'
import { clojure } from './clojure.ts'
import { cobol } from './cobol.ts'
import { cpp } from './cpp.ts'
import { crystal } from './crystal.ts'
import { d } from './d.ts'
import { dart, flutter } from './dart.ts'
import { deno } from './deno.ts'
import { dotnetPublished } from './dotnet-published.ts'
import { dotnet } from './dotnet.ts'
import { elixir } from './elixir.ts'
import { erlang } from './erlang.ts'
import { generators } from './generators.ts'
import { gleam } from './gleam.ts'
import { go } from './go.ts'
import { haskell } from './haskell.ts'
import { java, kotlin } from './java.ts'
import { julia } from './julia.ts'
import { lisp } from './lisp.ts'
import { lua } from './lua.ts'
import { nim } from './nim.ts'
import { nodeFile } from './node-file.ts'
import { node } from './node.ts'
import { ocaml } from './ocaml.ts'
import { perl } from './perl.ts'
import { php } from './php.ts'
import { python } from './python.ts'
import { r } from './r.ts'
import { racket } from './racket.ts'
import { ruby } from './ruby.ts'
import { rustWeb } from './rust-web.ts'
import { rust } from './rust.ts'
import { scala } from './scala.ts'
import { procfileOnly, shell } from './shell.ts'
import type { Stack } from './stack.ts'
import { staticFiles } from './static.ts'
import { swift } from './swift.ts'
import { tcl } from './tcl.ts'
import { vlang } from './v.ts'
import { zig } from './zig.ts'

/**
 * All stacks; the first that recognises a folder gets it. The order:
 * 1. Languages whose projects often hold a package.json for assets, and whose own manifest leaves no doubt.
 * 2. Languages with a manifest of their own that nothing else has.
 * 3. Python, whose manifests also serve documentation generators, which therefore stand before it.
 * 4. Deno and Bun before Node, because their projects have Node's manifest too.
 * 5. What is left: single files, plain pages, scripts.
 */
export const STACKS: readonly Stack[] = [
  php,
  ruby,
  elixir,
  erlang,
  java,
  kotlin,
  scala,
  clojure,
  dotnet,
  dotnetPublished,
  go,
  rustWeb,
  rust,
  swift,
  gleam,
  crystal,
  haskell,
  zig,
  nim,
  ocaml,
  vlang,
  d,
  lisp,
  flutter,
  dart,
  generators,
  julia,
  r,
  python,
  deno,
  bun,
  node,
  cpp,
  perl,
  lua,
  racket,
  cobol,
  tcl,
  nodeFile,
  staticFiles,
  shell,
  procfileOnly,
]
