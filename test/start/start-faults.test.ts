import { describe, expect, it } from 'vitest'
import { ConfigError } from '#server/kernel/config'
import { StartError, toStartError } from '#server/start/start-faults'

const sqlite = (code: string, message = 'oh') =>
  Object.assign(new Error(message), { name: 'SqliteError', code })
const file = (code: string, syscall = 'open') =>
  Object.assign(new Error(code), { code, path: '/data/file', syscall })
const told = (error: unknown) => toStartError(error, '/data/portreeve.db') as Error

describe('what ends a start', () => {
  it.each([
    [new ConfigError('PORT must be a number.'), 'PORT must be a number.'],
    [sqlite('SQLITE_BUSY'), 'the database /data/portreeve.db is held by another program. End what uses it.'],
    [sqlite('SQLITE_FULL'), 'the database /data/portreeve.db cannot be written: its file system is full.'],
    [
      sqlite('SQLITE_READONLY_DIRECTORY', 'attempt to write a readonly database'),
      'the database /data/portreeve.db cannot be used: attempt to write a readonly database (SQLITE_READONLY_DIRECTORY). Look at its rights, at those of its folder, and at the disk.',
    ],
    [file('EACCES'), '/data/file cannot be used: this user may not use it.'],
    [file('EROFS', 'mkdir'), '/data/file cannot be used: its file system is read-only.'],
  ])('%s is one sentence for the operator', (error, sentence) => {
    expect(told(error)).toBeInstanceOf(StartError)
    expect(told(error).message).toBe(sentence)
  })
  it('and is a fault of Portreeve itself stays what it is, with its stack', () => {
    for (const fault of [
      new TypeError('x is not a function'),
      file('ENOENT', 'connect'),
      new StartError('told already'),
    ])
      expect(told(fault)).toBe(fault)
  })
})
