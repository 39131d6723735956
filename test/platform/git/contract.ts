import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Git, GitSource } from '#server/platform/git/git'

/** A place with repositories, and a Git that reads them. */
export interface Forge {
  git: Git
  /** Creates a repository; with a token, only who has it may read. */
  create(name: string, token?: string): ForgeRepository
  /** Address of a repository that does not exist. */
  absent_url: string
  close(): Promise<void>
}
export interface ForgeRepository {
  url: string
  commit(files: Record<string, string | null>, message?: string, branch?: string): string
}

/** What every Git must do, written once for all of them. */
export function gitContract(name: string, open: () => Promise<Forge>): void {
  describe(`${name} reads repositories`, () => {
    let forge: Forge
    let base: string
    let directory: string
    let count = 0
    const never = new AbortController().signal
    const create = (token?: string) => forge.create(`owner/repository-${(count += 1)}`, token)
    const checkout = (source: GitSource, into = directory, signal = never) =>
      forge.git.checkout(source, into, { lfs: false, onLog() {} }, signal)
    beforeAll(async () => {
      forge = await open()
    })
    afterAll(() => forge.close())
    beforeEach(() => {
      base = mkdtempSync(join(tmpdir(), 'portreeve-git-contract-'))
      directory = join(base, 'deployment', 'source')
    })
    afterEach(() => rmSync(base, { recursive: true, force: true }))

    it('resolves HEAD, a branch, and a branch with slashes and signs', async () => {
      const repository = create()
      const main = repository.commit({ a: '1' })
      const other = repository.commit({ a: '2' }, 'Other', 'feature/fix#1+x')
      expect(await forge.git.resolve({ url: repository.url }, never)).toEqual({
        branch: 'main',
        sha: main,
      })
      expect(await forge.git.resolve({ url: repository.url, branch: 'main' }, never)).toEqual({
        branch: 'main',
        sha: main,
      })
      expect(await forge.git.resolve({ url: repository.url, branch: 'feature/fix#1+x' }, never)).toEqual({
        branch: 'feature/fix#1+x',
        sha: other,
      })
    })

    it('checks out the tip and tells whose work it is', async () => {
      const repository = create()
      repository.commit({ 'a.txt': 'old', 'gone.txt': 'x' })
      const sha = repository.commit(
        { 'a.txt': 'new', 'sub/b.txt': 'bb', 'gone.txt': null },
        'Add b\n\nA long explanation.',
      )
      for (const source of [{ url: repository.url }, { url: repository.url, branch: 'main' }]) {
        const into = join(base, source.branch ?? 'head')
        expect(await checkout(source, into)).toEqual({
          branch: 'main',
          sha,
          message: 'Add b',
          author: 'Ada Lovelace',
          committed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
          files: 2,
          size_bytes: 5,
        })
        expect(readdirSync(into).sort()).toEqual(['a.txt', 'sub'])
        expect(readFileSync(join(into, 'a.txt'), 'utf8')).toBe('new')
      }
    })

    it('checks out an earlier commit, by its whole id or the start of it', async () => {
      const repository = create()
      const first = repository.commit({ a: 'first' })
      repository.commit({ a: 'second' })
      for (const source of [
        { commit: first },
        { commit: first, branch: 'main' },
        { commit: first.slice(0, 8) },
        { commit: first.slice(0, 10).toUpperCase(), branch: 'main' },
      ]) {
        const into = join(base, source.commit + (source.branch ?? ''))
        expect(await checkout({ url: repository.url, ...source }, into)).toMatchObject({
          branch: 'main',
          sha: first,
        })
        expect(readFileSync(join(into, 'a'), 'utf8')).toBe('first')
      }
    })

    it('cuts a long subject to 200 characters', async () => {
      const repository = create()
      repository.commit({ a: '1' }, 'x'.repeat(500))
      expect((await checkout({ url: repository.url })).message.length).toBeLessThanOrEqual(200)
    })

    it('accepts an empty folder, and refuses one with something in it without touching it', async () => {
      const repository = create()
      repository.commit({ a: '1' })
      mkdirSync(directory, { recursive: true })
      await checkout({ url: repository.url })
      expect(readdirSync(directory)).toEqual(['a'])
      const full = join(base, 'full')
      mkdirSync(full)
      writeFileSync(join(full, 'mine'), '')
      await expect(checkout({ url: repository.url }, full)).rejects.toThrow(/not empty/)
      expect(readdirSync(full)).toEqual(['mine'])
    })

    it('opens a private repository with its token only', async () => {
      const repository = create('right-token')
      const sha = repository.commit({ a: '1' })
      const as = (token: string): GitSource => ({
        url: repository.url,
        branch: 'main',
        credential: { kind: 'token', username: 'robot', token },
      })
      expect(await forge.git.resolve(as('right-token'), never)).toEqual({ branch: 'main', sha })
      expect(await checkout(as('right-token'))).toMatchObject({ sha })
      await expect(checkout({ url: repository.url, branch: 'main' }, join(base, 'x'))).rejects.toMatchObject({
        code: 'authentication',
        hint: expect.stringContaining('token'),
      })
      await expect(checkout(as('wrong-token'), join(base, 'x'))).rejects.toMatchObject({
        code: 'authentication',
        message: expect.not.stringContaining('wrong-token'),
      })
      await expect(forge.git.resolve(as('wrong-token'), never)).rejects.toMatchObject({
        code: 'authentication',
      })
    })

    it.each<[string, string, (repository: ForgeRepository) => GitSource]>([
      ['a branch that does not exist', 'branch_not_found', ({ url }) => ({ url, branch: 'absent' })],
      ['a commit that does not exist', 'commit_not_found', ({ url }) => ({ url, commit: 'a'.repeat(40) })],
      [
        'an abbreviation of no commit',
        'commit_not_found',
        ({ url }) => ({ url, branch: 'main', commit: 'abcdef01' }),
      ],
      [
        'a commit that does not exist, of a branch that does not either',
        'commit_not_found',
        ({ url }) => ({ url, branch: 'absent', commit: 'a'.repeat(40) }),
      ],
      ['a repository that does not exist', 'not_found', () => ({ url: forge.absent_url })],
    ])('refuses %s with a sentence and a hint, and leaves no folder', async (_name, code, source) => {
      const repository = create()
      repository.commit({ a: '1' })
      await expect(checkout(source(repository))).rejects.toMatchObject({
        name: 'GitError',
        code,
        message: expect.stringMatching(/^[A-Z].*\.$/),
        hint: expect.stringMatching(/^[A-Z].*\.$/),
      })
      expect(existsSync(directory)).toBe(false)
    })

    it('names at most five branches that there are, when one is missing', async () => {
      const repository = create()
      for (const branch of ['main', 'one', 'two', 'three', 'four', 'five', 'six'])
        repository.commit({ a: branch }, 'x', branch)
      const error = await forge.git
        .resolve({ url: repository.url, branch: 'absent' }, never)
        .catch((reason: unknown) => reason)
      expect(error).toMatchObject({
        code: 'branch_not_found',
        message: expect.stringContaining('"absent"'),
        hint: expect.stringMatching(/and 2 more\.$/),
      })
    })

    it('says that a repository is empty', async () => {
      const { url } = create()
      await expect(forge.git.resolve({ url }, never)).rejects.toMatchObject({ code: 'empty' })
      await expect(checkout({ url, branch: 'main' })).rejects.toMatchObject({ code: 'empty' })
    })

    it('does nothing when cancelled before the start', async () => {
      const repository = create()
      repository.commit({ a: '1' })
      await expect(checkout({ url: repository.url }, directory, AbortSignal.abort())).rejects.toMatchObject({
        code: 'aborted',
      })
      expect(existsSync(directory)).toBe(false)
    })
  })
}
