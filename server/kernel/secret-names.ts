/** What bundlers put into pages that everybody can read. */
const PUBLIC_NAME = /^(NEXT_PUBLIC|VITE|PUBLIC|REACT_APP|NUXT_PUBLIC|GATSBY|EXPO_PUBLIC|VUE_APP)_/
const SECRET_NAME =
  /(^|_)(PASSWORD|PASSWD|PASS|PASSPHRASE|SECRET|SECRETS|TOKEN|CREDENTIALS?|PRIVATE_KEY|API_?KEY|ACCESS_KEY|ENCRYPTION_KEY|SIGNING_KEY|MASTER_KEY|SECRET_KEY(_BASE)?|DSN)($|_)/i
/** Names without a line between their words: PGPASSWORD, REDISCLI_AUTH, dbPassword, clientSecret, MINIO_ROOT_PWD. */
const JOINED_NAME =
  /[A-Za-z](PASSWORD|PASSWD)($|_)|(_PWD|CLI_AUTH)$|[a-z](Password|Secret|Token|ApiKey)$|^(db)?pass(word)?$/
/** How keys of well-known services begin, and how long what follows is at least. */
const KEY_SHAPES = [
  String.raw`(sk|rk)_(live|test)_\w{10,}`,
  String.raw`gh[pousr]_\w{20,}`,
  String.raw`github_pat_\w{20,}`,
  String.raw`gl(pat|ptt|dt|rt|soat|oas)-[\w.-]{20,}`,
  String.raw`xox[abeprs]-[\w-]{10,}`,
  String.raw`xapp-[\w-]{20,}`,
  'AKIA[A-Z0-9]{16}',
  String.raw`SG\.[\w-]{16,}\.[\w-]{16,}`,
  // OpenAI, Anthropic and those who write theirs alike.
  String.raw`sk-[\w-]{20,}`,
  String.raw`(gsk|hf|r8|npm|whsec|sbp|sb_secret|ntn|nfp|lin_api|dckr_pat|dckr_oat|sntrys|shp(at|ca|pa|ss))_[\w+/=.-]{20,}`,
  String.raw`(xai|pypi|pplx|GOCSPX)-[\w-]{20,}`,
  'do[opr]_v1_[a-f0-9]{40,}',
  'key-[a-f0-9]{32}',
  're_[A-Za-z0-9]{6,}_[A-Za-z0-9]{16,}',
  String.raw`hvs\.[\w-]{20,}`,
  // Laravel's key of an app.
  'base64:[A-Za-z0-9+/]{40,}={0,2}',
]
/** What keys of well-known services and private keys look like, whatever they are called. */
const SECRET_SHAPE = new RegExp(`^(${KEY_SHAPES.join('|')})$|-----BEGIN [A-Z ]*PRIVATE KEY-----`)
/** A signed token or a key of Google's, such as those for browsers, which are no secrets where the name says so. */
const TOKEN_SHAPE = /^(eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+|AIza[\w-]{35})$/
/** An address that whoever knows it may post to: those that chats give out. */
const POSTING_ADDRESS =
  /^https:\/\/(hooks\.slack\.com\/(services|workflows|triggers)|(canary\.|ptb\.)?discord(app)?\.com\/api\/webhooks)\/\S/i
const ADDRESS_WITH_PASSWORD = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:[^\s/@]+@/i

/** Whether a variable is taken for a secret when nobody says so. */
export const seemsSecret = (key: string, value: string): boolean =>
  SECRET_SHAPE.test(value) ||
  (!PUBLIC_NAME.test(key) &&
    (SECRET_NAME.test(key) ||
      JOINED_NAME.test(key) ||
      TOKEN_SHAPE.test(value) ||
      POSTING_ADDRESS.test(value) ||
      ADDRESS_WITH_PASSWORD.test(value)))
