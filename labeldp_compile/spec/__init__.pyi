from labeldp_compile.spec.load import json_schema as json_schema
from labeldp_compile.spec.load import load_spec as load_spec
from labeldp_compile.spec.load import parse_spec as parse_spec
from labeldp_compile.spec.model import Spec as Spec
