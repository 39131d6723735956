/** One line or more for each thing that the package's own tests are about. */
export const DOTENV_TEXTS: Record<string, string> = {
  'a plain value': 'PLAIN=value',
  'a line after an empty one and a comment': 'A=1\n\n# nothing here\nB=2',
  'empty values, with and without quotes': `A=\nB=''\nC=""\nD=\`\``,
  'quotes of three kinds': `A='one'\nB="two"\nC=\`three\``,
  'spaces inside of quotes': `A='   one   '\nB="   two   "\nC=\`   three   \``,
  'quotes inside of other quotes': `A='say "so"'\nB="it's"\nC='tick \`t\`'\nD="tick \`t\`"\nE=\`"both" 'kinds'\``,
  'brackets right behind a quote': `A="{ port: $PORT}"\nB='{ port: $PORT}'`,
  'line breaks that are written out, only in double quotes': String.raw`A="one\ntwo"
B=one\ntwo
C='one\ntwo'
D="one\rtwo"`,
  'comments behind values': `A=one two # three #four\nB='one # two' # three\nC="one # two" # three\nD=\`one # two\` # three`,
  'a number sign without a space before it': 'A=one#two three',
  'equal signs in a value': 'A=one==two=',
  'quotes that belong to a value': `A={"one": "two"}\nB='{"one": "two"}'\nC=\`{"one": "it's"}\``,
  'spaces around values and names': 'A=    one two\n    B = three   ',
  'export before a name': 'export A=one\n  export B="two"',
  'an address and a mail address': 'A=https://ada@example.com:1234/path?x=1&y=2\nB=ada+b@example.com',
  'a colon instead of the equal sign': 'A: one\nB: "two three"',
  'values of several lines': `A="one\ntwo\n\n# three\nfour"\nB='one\ntwo = 2\n'\nC=\`"one"\n'two'\`\nD=after`,
  'a key in its armour':
    'A="-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\nLgGJQwu9WqyzHKZ6==\n-----END PUBLIC KEY-----"\nB=1',
  'quotes with text behind them': `A="one" two\nB='one'two`,
  'escaped quotes': String.raw`A="one \"two\" three"
B='one \'two\' three'`,
  'line ends of other systems': 'A=1\r\nB="2\r\n3"\rC=4\r\n',
  'a text without anything': '',
  'comments only': '# one\n   # two',
}
