import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { EditorState, type Extension, StateEffect, StateField } from '@codemirror/state'
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  WidgetType,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'
import type { FaultLine } from '@/lib/fault-lines'
import { pageNonce } from '@/lib/nonce'

export type CodeLanguage = 'yaml' | 'json' | 'dotenv' | 'dockerfile' | 'plain'

/** Lines of `KEY=value` and of instructions, with comments. */
const words = (first: RegExp) =>
  StreamLanguage.define({
    token(stream) {
      if (stream.sol() && stream.match(/^\s*#.*/)) return 'comment'
      if (stream.sol() && stream.match(first)) return 'propertyName'
      if (stream.match(/^\$\{[^}]*\}|^\$\w+/)) return 'variableName'
      if (stream.match(/^"(?:[^"\\]|\\.)*"|^'[^']*'/)) return 'string'
      stream.next()
      return null
    },
  })
// JSON is YAML, too.
const LANGUAGES: Record<CodeLanguage, () => Extension> = {
  yaml,
  json: yaml,
  dotenv: () => words(/^\s*(?:export\s+)?[\w.-]+(?==)/),
  dockerfile: () => words(/^\s*[A-Za-z]+(?=\s)/),
  plain: () => [],
}
/** Where Tab indents; Escape, then Tab, leads on. Elsewhere Tab leads on at once. */
const INDENTED = new Set<CodeLanguage>(['yaml', 'json'])

const colours = HighlightStyle.define([
  {
    tag: [tags.propertyName, tags.definition(tags.propertyName), tags.keyword],
    color: 'var(--color-accent-strong)',
  },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--color-good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--color-info)' },
  { tag: [tags.variableName, tags.labelName, tags.typeName], color: 'var(--color-warn)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--color-muted)', fontStyle: 'italic' },
  { tag: tags.invalid, color: 'var(--color-bad)' },
])
const theme = EditorView.theme({
  '&': { backgroundColor: 'var(--color-surface)', color: 'var(--color-text)', fontSize: 'var(--text-sm)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)', lineHeight: '1.5', maxHeight: '60vh', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--color-text)' },
  '.cm-cursor': { borderLeftColor: 'var(--color-text)' },
  '.cm-gutters': {
    backgroundColor: 'var(--color-sunken)',
    color: 'var(--color-muted)',
    borderRight: '1px solid var(--color-line)',
  },
  '.cm-activeLine, .cm-activeLineGutter': {
    backgroundColor: 'color-mix(in srgb, var(--color-accent) 8%, transparent)',
  },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in srgb, var(--color-accent) 25%, transparent)',
  },
  '.cm-searchMatch': { backgroundColor: 'color-mix(in srgb, var(--color-warn) 30%, transparent)' },
  '.cm-searchMatch-selected': { backgroundColor: 'color-mix(in srgb, var(--color-warn) 60%, transparent)' },
  '.cm-panels': { backgroundColor: 'var(--color-sunken)', color: 'var(--color-text)' },
  '.cm-panels input, .cm-panels button': {
    background: 'var(--color-surface)',
    color: 'var(--color-text)',
    border: '1px solid var(--color-line-strong)',
    borderRadius: 'var(--radius-sm)',
  },
  '.cm-fault': { backgroundColor: 'color-mix(in srgb, var(--color-bad) 14%, transparent)' },
  '.cm-fault-text': {
    color: 'var(--color-bad)',
    padding: '0 6px 2px',
    whiteSpace: 'normal',
    fontFamily: 'var(--font-sans)',
  },
})

class FaultText extends WidgetType {
  private readonly message: string
  constructor(message: string) {
    super()
    this.message = message
  }
  override eq(other: FaultText) {
    return other.message === this.message
  }
  override toDOM() {
    const box = document.createElement('div')
    box.className = 'cm-fault-text'
    box.textContent = this.message
    return box
  }
}
const setFaults = StateEffect.define<readonly FaultLine[]>()
/** Lines that the server found something wrong in, until the text is changed. */
const faults = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, change) {
    for (const effect of change.effects) if (effect.is(setFaults)) return decorate(change.state, effect.value)
    return change.docChanged ? Decoration.none : value
  },
  provide: (field) => EditorView.decorations.from(field),
})
function decorate({ doc }: EditorState, found: readonly FaultLine[]): DecorationSet {
  const marks = found
    .filter(({ line }) => line >= 1 && line <= doc.lines)
    .flatMap(({ line, message }) => {
      const { from, to } = doc.line(line)
      return [
        Decoration.line({ class: 'cm-fault' }).range(from),
        Decoration.widget({ widget: new FaultText(message), block: true, side: 1 }).range(to),
      ]
    })
  return Decoration.set(marks, true)
}

/** Shows what is wrong at its lines, and the first of them. */
export function showFaults(view: EditorView, found: readonly FaultLine[]): void {
  view.dispatch({ effects: setFaults.of(found) })
  const first = Math.min(...found.map(({ line }) => line).filter((line) => line <= view.state.doc.lines))
  if (Number.isFinite(first))
    view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(first).from, { y: 'center' }) })
}

/** Puts another text in, as when a draft is thrown away. */
export function setText(view: EditorView, text: string): void {
  if (view.state.doc.toString() !== text)
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } })
}

export function createEditor(given: {
  parent: HTMLElement
  text: string
  language: CodeLanguage
  rows: number
  attributes: Record<string, string>
  changed(text: string): void
}): EditorView {
  const { language, rows } = given
  const state = EditorState.create({
    doc: given.text,
    extensions: [
      EditorView.cspNonce.of(pageNonce()),
      lineNumbers(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      // What is hidden in a text, or turns it, is a sign in its place: files come from repositories and catalogues.
      highlightSpecialChars({ addSpecialChars: /[\u202a-\u202c\u2068]/ }),
      history(),
      drawSelection(),
      highlightSelectionMatches(),
      EditorState.tabSize.of(2),
      keymap.of([
        ...defaultKeymap,
        ...historyKeymap,
        ...searchKeymap,
        ...(INDENTED.has(language) ? [indentWithTab] : []),
      ]),
      LANGUAGES[language](),
      syntaxHighlighting(colours),
      faults,
      theme,
      EditorView.theme({ '.cm-content, .cm-gutter': { minHeight: `${rows * 1.5}em` } }),
      EditorView.contentAttributes.of({
        ...given.attributes,
        tabindex: '0',
        spellcheck: 'false',
        autocapitalize: 'off',
      }),
      EditorView.updateListener.of(
        ({ docChanged, state: now }) => docChanged && given.changed(now.doc.toString()),
      ),
    ],
  })
  return new EditorView({ state, parent: given.parent })
}
