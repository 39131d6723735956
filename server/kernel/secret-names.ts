/** What bundlers put into pages that everybody can read. */
const PUBLIC_NAME = /^(NEXT_PUBLIC|VITE|PUBLIC|REACT_APP|NUXT_PUBLIC|GATSBY|EXPO_PUBLIC|VUE_APP)_/
const SECRET_NAME =
  /(^|_)(PASSWORD|PASSWD|PASS|PASSPHRASE|SECRET|SECRETS|TOKEN|CREDENTIALS?|PRIVATE_KEY|API_?KEY|ACCESS_KEY|ENCRYPTION_KEY|SIGNING_KEY|MASTER_KEY|SECRET_KEY(_BASE)?|DSN)($|_)/i
/** Names without a line between their words: PGPASSWORD, REDISCLI_AUTH, dbPassword, clientSecret, MINIO_ROOT_PWD. */
const JOINED_NAME =
  /[A-Za-z](PASSWORD|PASSWD)($|_)|(_PWD|CLI_AUTH)$|[a-z](Password|Secret|Token|ApiKey)$|^(db)?pass(word)?$/
/** What keys of well-known services and private keys look like, whatever they are called. */
const SECRET_SHAPE =
  /^((sk|rk)_(live|test)_\w{10,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}|SG\.[\w-]{16,}\.[\w-]{16,})$|-----BEGIN [A-Z ]*PRIVATE KEY-----/
/** A signed token, such as the key of Supabase for browsers, which is no secret where its name says so. */
const TOKEN_SHAPE = /^eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+$/
const ADDRESS_WITH_PASSWORD = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:[^\s/@]+@/i

/** Whether a variable is taken for a secret when nobody says so. */
export const seemsSecret = (key: string, value: string): boolean =>
  SECRET_SHAPE.test(value) ||
  (!PUBLIC_NAME.test(key) &&
    (SECRET_NAME.test(key) ||
      JOINED_NAME.test(key) ||
      TOKEN_SHAPE.test(value) ||
      ADDRESS_WITH_PASSWORD.test(value)))
