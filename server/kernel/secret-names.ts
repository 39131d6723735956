/** What bundlers put into pages that everybody can read. */
const PUBLIC_NAME = /^(NEXT_PUBLIC|VITE|PUBLIC|REACT_APP|NUXT_PUBLIC|GATSBY|EXPO_PUBLIC|VUE_APP)_/
const SECRET_NAME =
  /(^|_)(PASSWORD|PASSWD|PASS|PASSPHRASE|SECRET|SECRETS|TOKEN|CREDENTIALS?|PRIVATE_KEY|API_?KEY|ACCESS_KEY|ENCRYPTION_KEY|SIGNING_KEY|MASTER_KEY|SECRET_KEY(_BASE)?|DSN)($|_)/i
const ADDRESS_WITH_PASSWORD = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:[^\s/@]+@/i

/** Whether a variable is taken for a secret when nobody says so. */
export const seemsSecret = (key: string, value: string): boolean =>
  !PUBLIC_NAME.test(key) && (SECRET_NAME.test(key) || ADDRESS_WITH_PASSWORD.test(value))
