import { isCommonPassword } from './common-passwords.ts'

/** What a password must not be guessed from. */
export interface PasswordOwner {
  email: string
  name: string
}

const PRODUCT_WORDS = ['portreeve', 'password', 'administrator', 'admin', 'localhost', 'docker', 'heroku']
/** The word within a password: without what people add to make it look strong. */
const core = (text: string) => text.toLowerCase().replace(/^[^a-z]+|[^a-z]+$/g, '')

/** Why a new password is refused, as a sentence; undefined when it may be used. */
export function weaknessOf(password: string, owner: PasswordOwner): string | undefined {
  const plain = password.toLowerCase()
  if (new Set(plain).size < 4)
    return 'repeats too few characters. Use several words, or let a password manager make one.'
  if (isCommonPassword(plain)) return 'is one of the passwords that attackers try first. Use another one.'
  if (PRODUCT_WORDS.includes(core(password)))
    return 'is a word of this product with something added. Use another one.'
  const own = [
    owner.email.toLowerCase(),
    owner.email.toLowerCase().split('@')[0]!,
    owner.name.toLowerCase(),
    owner.name.toLowerCase().replaceAll(' ', ''),
  ]
  if (
    own.some(
      (word) =>
        word.length >= 4 && (plain === word || core(word) === core(password)) && core(password) !== '',
    )
  )
    return 'is made of your own name or address. Use another one.'
  return undefined
}
