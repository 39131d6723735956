import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { ROOT } from '#test/support/routes'

const isText = (type: ts.Type): boolean =>
  (type.flags & ts.TypeFlags.String) !== 0 || (type.isUnion() && type.types.some(isText))

/** Whether a type takes any text as a key; those of arrays and of fixed keys do not. */
function takesAnyKey(checker: ts.TypeChecker, type: ts.Type): boolean {
  const bare = checker.getNonNullableType(type)
  return (bare.isUnion() ? bare.types : [bare]).some(
    (one) => (one.flags & ts.TypeFlags.Any) !== 0 || checker.getIndexInfoOfType(one, ts.IndexKind.String),
  )
}
function isWritten(node: ts.Node): boolean {
  const { parent } = node
  if (ts.isDeleteExpression(parent)) return true
  if (!ts.isBinaryExpression(parent) || parent.left !== node) return false
  const { kind } = parent.operatorToken
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment
}

describe('a look-up by a text that is not written in the code', () => {
  it('finds own keys only: `constructor` and `__proto__` are texts like any other', () => {
    const path = join(ROOT, 'tsconfig.json')
    const { config } = ts.readConfigFile(path, ts.sys.readFile)
    const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT)
    const ours = fileNames.filter((name) => /^\/(server|routes|tasks|cli)\//.test(name.slice(ROOT.length)))
    const program = ts.createProgram(
      [...ours, ...fileNames.filter((name) => name.endsWith('.d.ts'))],
      options,
    )
    const checker = program.getTypeChecker()
    const found: string[] = []
    for (const name of ours) {
      if (name.endsWith('/server/kernel/own.ts')) continue
      const source = program.getSourceFile(name)!
      const note = (node: ts.Node) => {
        const { line } = source.getLineAndCharacterOfPosition(node.getStart())
        found.push(`${name.slice(ROOT.length + 1)}:${line + 1} ${node.getText()}`)
      }
      const visit = (node: ts.Node): void => {
        if (ts.isElementAccessExpression(node) && !ts.isLiteralExpression(node.argumentExpression)) {
          const key = checker.getTypeAtLocation(node.argumentExpression)
          const record = checker.getTypeAtLocation(node.expression)
          if (isText(key) && takesAnyKey(checker, record) && !isWritten(node)) note(node)
        }
        if (
          ts.isBinaryExpression(node) &&
          node.operatorToken.kind === ts.SyntaxKind.InKeyword &&
          isText(checker.getTypeAtLocation(node.left)) &&
          !ts.isLiteralExpression(node.left)
        )
          note(node)
        ts.forEachChild(node, visit)
      }
      visit(source)
    }
    expect(found, 'look it up with own() of #server/kernel/own, or keep it in a Map').toEqual([])
  }, 300_000)
})
